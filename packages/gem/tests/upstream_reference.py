"""What the upstream alone gives for ``rg:`` ids: run as a program, it prints items and rewards as JSON.

Knows nothing of LLEnvs. Arguments: names. The global generators are seeded before each item because some of the
data sets draw from them; the caller sets PYTHONHASHSEED=0.
"""

import contextlib
import io
import json
import random
import sys

SEED = 42
ITEMS = 2


def answers(entry):
    """Answers worth comparing: right, nearly right, of another kind, empty, none."""
    right = entry["answer"] or entry["metadata"].get("example_answer") or "UP"
    right = str(right)
    return [
        *(right, f"{right} apples", f"{right}.0", right.lower(), right[1:]),
        *("42", "-1", "nan", "3.5", "1/2", "True", "x**2 + C", "1, 2, 3", "[1, 2, 3]", "[[1, 2], [3, 4]]"),
        *('["a", "b"]', "0 1\n1 0", "2 + 2", "((", "Monday", None),
    ]


def main():
    import gem
    import gem.envs
    import numpy as np

    result = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for name in sys.argv[1:]:
            random.seed(SEED)
            np.random.seed(SEED)
            env = gem.make(f"rg:{name}")
            items = result[name] = []
            for index in range(ITEMS):
                random.seed(SEED + index)
                np.random.seed(SEED + index)
                question, _ = env.reset()
                rewards = []
                for answer in answers(env.data):
                    text = "I do not know." if answer is None else f"So it is \\boxed{{{answer}}}."
                    try:
                        observation, reward, terminated, truncated, _ = env.step(text)
                    except Exception as error:  # noqa: BLE001
                        rewards.append((text, type(error).__name__))
                    else:
                        assert terminated, observation
                        assert truncated, observation
                        rewards.append((text, float(reward)))
                items.append({"question": question, "answer": env.data["answer"], "rewards": rewards})
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
