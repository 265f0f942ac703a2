"""The model sees the observation, and the observation holds no ground truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from llenvs.core.state import State
from llenvs.testing.check import check
from llenvs.testing.secrecy import EVIDENCE, holders, occurs, visible_texts
from llenvs.testing.subject import Subject

_FEW, _MANY = 4, 24  # tasks that the automatic rule begins with, and those that must confirm a suspicion


@check("nothing hidden is in what the model sees", needs=["encoding"])
def hidden_stays_hidden(subject: Subject) -> Iterator[str]:
    """By identity always; by the texts that the caller names, or else by the automatic rule."""
    states = [state for walk in subject.walks for state in walk.states]
    for state in states:
        kept = {id(each) for each in holders(state.hidden)}
        if any(id(each) in kept for each in _objects(state.observation)):
            yield "the observation refers to the very object in hidden that holds the answer"
    if subject.secrets is None:
        yield from _automatic(subject)
        return
    for state in states:
        if state.is_terminal:  # an upstream may tell the answer at the end
            continue
        for secret in subject.secrets(state):
            for place, text in visible_texts(state.observation):
                if occurs(secret, text):
                    yield f"state {state.metadata.episode_id}: {place} contains the secret {secret[:80]!r}"


def _automatic(subject: Subject) -> Iterator[str]:
    size = len(subject.environment)
    if size < 3:  # with two tasks it could be chance
        return
    few = _firsts(subject, min(size, _FEW))
    suspected = [evidence for evidence in EVIDENCE if evidence.found(few)]
    many = _firsts(subject, min(size, _MANY)) if suspected else []
    for evidence in suspected:
        place = evidence.found(many)
        if place is not None:
            yield (
                f"{place} shows {evidence.what} in all of {len(many)} tasks; if that is right for this benchmark, "
                "name what is secret with secrets=... (or secrets=no_secrets)"
            )


def _firsts(subject: Subject, count: int) -> list[State[Any]]:
    """First states of `count` tasks, from the first to the last."""
    last = len(subject.environment) - 1
    return [subject.start(subject.environment, i * last // (count - 1)) for i in range(count)]


def _objects(value: Any) -> Iterator[Any]:
    """The mappings and lists in `value`, those inside records included."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping | list):
            yield each
        if dataclasses.is_dataclass(each) and not isinstance(each, type):
            pending.extend(getattr(each, field.name) for field in dataclasses.fields(each))
        elif isinstance(each, Mapping):
            pending.extend(each.values())
        elif isinstance(each, list | tuple):
            pending.extend(each)
