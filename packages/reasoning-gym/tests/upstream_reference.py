"""What the upstream alone gives: run as a program, it prints items and scores of every generator as JSON.

Knows nothing of LLEnvs. The global generators are seeded before each item because list_functions and codeio draw
from them; the caller sets PYTHONHASHSEED=0.
"""

import contextlib
import io
import json
import random
import sys
from typing import Any

SEED = 42
ITEMS = 2


def answers(entry):
    """Answers worth comparing: right, nearly right, of another kind, empty, none."""
    metadata = entry["metadata"]
    right = entry["answer"]
    if right is None:
        right = metadata.get("example_answer") or metadata.get("example_correct_answer")
        if "possible_answer" in metadata:
            right = json.dumps(metadata["possible_answer"])
    right = right or "UP"
    return [
        *(right, f"The answer is {right}", f"{right} apples", f"{right}.0", right.lower(), right[:-1], right[1:]),
        *("42", "-1", "nan", "inf", "3.5", "1/2", "True", "False", "no", "x", "x**2 + C", "5! - 1", "1, 2, 3"),
        *("[1, 2, 3]", "[[1, 2], [3, 4]]", '["a", "b"]', '{"a": 1}', "0 1\n1 0", "A=1,B=2", "2 × 3", "2 + 2 == 4"),
        *("{", "((", "'", "fill A", "Monday", "", None),
    ]


def main():
    import numpy as np
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    result: dict[str, list[dict[str, Any]]] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for name in DATASETS:
            if name == "composite":
                continue
            dataset = reasoning_gym.create_dataset(name, seed=SEED, size=ITEMS)
            items = result[name] = []
            for index in range(ITEMS):
                random.seed(SEED + index)
                np.random.seed(SEED + index)
                entry = dataset[index]
                scores: list[tuple[str | None, float | str]] = []
                for answer in answers(entry):
                    try:
                        scores.append((answer, float(dataset.score_answer(answer, entry))))
                    except Exception as error:  # noqa: BLE001
                        scores.append((answer, type(error).__name__))
                items.append({"question": entry["question"], "answer": entry["answer"], "scores": scores})
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
