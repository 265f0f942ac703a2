"""An answer never runs code, writes a file or holds up the process."""

import json
from pathlib import Path

import pytest

import llenvs
from llenvs import Action
from llenvs_reasoning_gym.catalogue import CATEGORY
from llenvs_reasoning_gym.guard import EXECUTING
from llenvs_reasoning_gym.scoring import UNPARSABLE

SIZES = ["9**9**9", "9^9^9^9", "1e999999999", "9^{9^{9^9}}", "factorial(10**9)", "9999!!!", "exp(exp(exp(99)))"]
LONG = ["9" * 1_000_000, "(" * 100_000, "[" * 100_000, "-" * 100_000 + "1", "9*" * 9_000 + "9", "U9999999999"]


@pytest.mark.parametrize("name", sorted(EXECUTING))
def test_an_answer_is_not_executed(name: str, tmp_path: Path) -> None:
    target = tmp_path / "created"
    payloads = [
        f"open({str(target)!r}, 'w')",
        f"[open({str(target)!r}, 'w').write('x')]",
        f"__import__('pathlib').Path({str(target)!r}).touch()",
        f"__import__('os').system('touch {target}')",
        f"[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__."
        f"__globals__['system']('touch {target}')",
        f'eval(\'__import__("os").system("touch {target}")\')',
        f"sin(__import__('os').system('touch {target}'))",
        f"lambda x: open({str(target)!r}, 'w')",
        f"f\"{{open({str(target)!r}, 'w')}}\"",
    ]
    with llenvs.make(f"reasoning_gym/{name}", size=1, answer_extractor="raw") as env:
        state, _ = env.reset(options={"task_index": 0})
        for payload in payloads:
            found = env.step(state, Action(payload)).rewards["score"]
            assert found.reward == UNPARSABLE.get(name, 0.0), payload
            assert "not scored" in found.metadata["error"]
    assert not target.exists()


@pytest.mark.parametrize("name", sorted(CATEGORY))
def test_no_answer_holds_up_the_process(name: str) -> None:
    """Every one of these hung or broke some scorer of the upstream; pytest's own limit ends a hang."""
    keys = json.dumps({f"k{i}": i for i in range(20_000)})
    with llenvs.make(f"reasoning_gym/{name}", size=1, answer_extractor="raw", time_limit=1) as env:
        state, _ = env.reset(options={"task_index": 0})
        for answer in [*SIZES, *LONG, keys]:
            reward = env.step(state, Action(answer)).rewards["score"].reward
            assert reward is not None
            assert 0.0 <= reward < 1.0


def test_what_takes_too_long_is_ended_and_the_next_answer_is_scored() -> None:
    keys = json.dumps({f"k{i}": i for i in range(20_000)})
    with llenvs.make("reasoning_gym/codeio", size=1, answer_extractor="raw", time_limit=2) as env:
        state, _ = env.reset(options={"task_index": 0})
        slow = env.step(state, Action(keys)).rewards
        assert slow["score"].reward == 0.0
        assert slow["score"].metadata["error"] == "scoring took longer than 2 s"
        assert slow["correctness"].reward == 0.0
        assert env.step(state, Action(state.hidden["entry"]["answer"])).rewards.total == 1.0


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("bitwise_arithmetic", ("metadata", "problem")),
        ("number_sorting", ("answer",)),
        ("polynomial_multiplication", ("answer",)),
        ("simple_integration", ("metadata", "integrand")),
        ("intermediate_integration", ("metadata", "integrand")),
    ],
)
def test_a_forged_state_is_not_executed_either(name: str, path: tuple[str, ...], tmp_path: Path) -> None:
    target = tmp_path / "created"
    with llenvs.make(f"reasoning_gym/{name}", size=1, answer_extractor="raw") as env:
        state, _ = env.reset(options={"task_index": 0})
        forged = llenvs.State.from_json(state.to_json())
        where = forged.hidden["entry"]
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = f"open({str(target)!r}, 'w')"
        found = env.step(forged, Action("[1, 2]")).rewards["score"]
    assert not target.exists()
    assert found.reward == 0.0
    assert "not scored" in found.metadata["error"]
