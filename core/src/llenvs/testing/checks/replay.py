"""States go on elsewhere: in another environment object, in another process."""

from __future__ import annotations

from collections.abc import Iterator

from llenvs.core.encoding import loads
from llenvs.core.environment import Environment
from llenvs.core.state import State
from llenvs.testing.check import NotApplicable, check
from llenvs.testing.difference import difference
from llenvs.testing.second_process import replayed
from llenvs.testing.subject import Subject


@check(
    "another environment object gives the same states and steps them", needs=["json_round_trip", "reset_by_task"]
)
def second_instance(subject: Subject) -> Iterator[str]:
    """Nothing about an episode may live in the environment that began it."""
    with subject.factory() as other:
        yield from _steps_alike(subject, other)
        for walk in subject.walks:
            differs = difference(walk.initial, subject.start(other, walk.task_index, walk.seed))
            if differs:
                yield f"task {walk.task_index} begins differently in a second environment, {differs}"


def _steps_alike(subject: Subject, other: Environment[object]) -> Iterator[str]:
    if not subject.environment.spec.deterministic:
        return
    for step in subject.steps:
        result = other.step(State.from_json(step.state.to_json()), step.action)
        differs = difference(step.result, result)
        if differs:
            yield f"step {step.state.metadata.step} differs in a second environment in {differs}"


@check("another process gives the same states and steps them from their JSON", needs=["second_instance"])
def second_process(subject: Subject) -> Iterator[str]:
    """The same in a new interpreter with another hash seed."""
    if not subject.second_process:
        raise NotApplicable("switched off")
    if not subject.is_reachable:
        raise NotApplicable("needs the address of an installed adapter, or a factory that can be imported")
    steps = subject.steps if subject.environment.spec.deterministic else []
    starts, results = replayed(subject, steps)
    for walk, text in zip(subject.walks, starts, strict=True):
        differs = difference(walk.initial, loads(text))
        if differs:
            yield f"task {walk.task_index} begins differently in a second process, {differs}"
    for step, text in zip(steps, results, strict=True):
        differs = difference(step.result, loads(text))
        if differs:
            yield f"step {step.state.metadata.step} differs in a second process in {differs}"
