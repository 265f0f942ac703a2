"""States as text."""

from __future__ import annotations

from collections.abc import Iterator

from llenvs.core.encoding import dumps, loads
from llenvs.core.errors import EncodingFailed
from llenvs.core.state import State
from llenvs.testing.check import NotApplicable, check
from llenvs.testing.difference import difference
from llenvs.testing.subject import Subject


@check("states and step results have exact JSON: plain data alone, types kept, nothing pickled", needs=["episode"])
def encoding(subject: Subject) -> Iterator[str]:
    """Everything that the walks met."""
    states = [(f"task {w.task_index}, state {i}", s) for w in subject.walks for i, s in enumerate(w.states)]
    results = [
        (f"task {w.task_index}, result {i}", s.result) for w in subject.walks for i, s in enumerate(w.steps)
    ]
    for where, value in [*states, *results]:
        try:
            text = dumps(value)
            again = loads(text)
        except EncodingFailed as error:
            yield f"{where}: {error}"
            continue
        differs = difference(value, again)
        if differs:
            yield f"{where}: reading back what was written gives another value, {differs}"


@check("a state that went through JSON steps like the original", needs=["step_repeatable"])
def json_round_trip(subject: Subject) -> Iterator[str]:
    """Every state of the walks, with the action that was taken in it."""
    if not subject.environment.spec.deterministic:
        raise NotApplicable("the spec says that steps are not deterministic")
    for step in subject.steps:
        result = subject.environment.step(State.from_json(step.state.to_json()), step.action)
        differs = difference(step.result, result)
        if differs:
            yield f"step {step.state.metadata.step} differs after a JSON round trip of its state in {differs}"
