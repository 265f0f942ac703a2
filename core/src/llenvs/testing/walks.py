"""Long walks, whose earlier states are stepped again: from several threads, elsewhere, in a second process."""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import dumps
from llenvs.core.environment import Environment
from llenvs.testing.difference import difference
from llenvs.testing.report import Outcome, Report
from llenvs.testing.second_process import replayed
from llenvs.testing.subject import Policy, Step, Subject, text_of


def check_walk(
    environment: Environment[Any],
    policy: Policy,
    *,
    through: Environment[Any] | None = None,
    seed: int = 0,
    steps: int = 50,
    branches: int = 10,
    threads: int = 4,
) -> None:
    """Walk at random, then step earlier states again, each twice, in random order and from several threads.

    Args:
        environment: the environment that is walked. Not closed.
        policy: ``policy(state, rng) -> Action or text``; `rng` is a `random.Random` of the walk.
        through: another environment over the same tasks (such as the same one behind a server) that steps the
            earlier states; None for `environment` itself.
        seed: of the walk, its choices, and of the draw of states.
        steps: length of the walk in steps; where an episode ends, the next task begins.
        branches: how many of its states are drawn.
        threads: how many threads step them.

    Raises:
        ConformanceFailed: a result differs from the recorded one; with the first difference of each.
    """
    rng = random.Random(seed)
    walked = _walk(environment, policy, rng, seed, steps)
    chosen = rng.sample(walked, min(branches, len(walked))) * 2
    rng.shuffle(chosen)
    stepping = through or environment
    with ThreadPoolExecutor(threads) as pool:
        again = list(pool.map(lambda step: stepping.step(step.state, step.action), chosen))
    differences = (difference(step.result, result) for step, result in zip(chosen, again, strict=True))
    _report(environment, "walk", tuple(dict.fromkeys(d for d in differences if d is not None)))


def check_walk_in_second_process(
    address: str,
    options: Mapping[str, Any],
    policy: Policy,
    *,
    seed: int = 0,
    steps: int = 50,
    branches: int = 10,
) -> None:
    """Walk at random, then step earlier states in a new interpreter, in random order, from their JSON alone.

    Args:
        address: ``adapter/name`` of an installed adapter.
        options: options of the environment.
        policy: ``policy(state, rng) -> Action or text``.
        seed: of the walk, its choices, and of the draw of states.
        steps: length of the walk in steps; where an episode ends, the next task begins.
        branches: how many of its states are drawn.

    Raises:
        ConformanceFailed: a result differs from the recorded one.
        SecondProcessFailed: the second process died.
    """
    from llenvs.core.registry import make

    rng = random.Random(seed)
    with make(address, **options) as environment:
        walked = _walk(environment, policy, rng, seed, steps)
        chosen = rng.sample(walked, min(branches, len(walked)))
        subject = Subject(lambda: make(address, **options), policy, address, options)
        _, results = replayed(subject, chosen, ())
        problems = tuple(
            f"after {step.state.metadata.step} steps, another result"
            for step, result in zip(chosen, results, strict=True)
            if result != dumps(step.result)
        )
        _report(environment, "walk_in_second_process", problems)


def _walk(environment: Environment[Any], policy: Policy, rng: random.Random, seed: int, steps: int) -> list[Step]:
    walked: list[Step] = []
    episode, state = 0, None
    while len(walked) < steps:
        if state is None or state.is_terminal:
            state, _ = environment.reset(seed=seed, options={"task_index": episode % len(environment)})
            episode += 1
        chosen = policy(state, rng)
        action = Action(chosen) if isinstance(chosen, str) else chosen
        result = environment.step(state, action)
        walked.append(Step(state, action, result, text_of(state), text_of(action)))
        state = result.next_state
    return walked


def _report(environment: Environment[Any], name: str, problems: tuple[str, ...]) -> None:
    outcome = Outcome(name, "earlier states of a long walk step to the recorded results", problems)
    Report(environment.spec.id, (outcome,)).raise_for_violations()
