"""Where ground truth could show: the texts of an observation, and what must not be among them.

Whether an answer in a prompt is a leak cannot be decided from one task: the answer of "which is larger, 3 or 7?"
is part of the question. `Evidence` therefore looks at several tasks at once, and only at places where a question
does not have its answer: next to its own key ("answer: 7"), in a dump of the hidden object, as the first or last
word of a text, after words that announce it ("hint: it is 7"). It speaks up when *all* tasks show *their own*
answer there and *none* shows that of another task, which rules out chance, yes/no questions, lettered choices and
worked examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from llenvs.core.encoding import dumps
from llenvs.core.observation import Observation
from llenvs.core.state import State

ANSWER_KEYS = frozenset(
    {
        "answer", "answers", "correct_answer", "final_answer", "expected", "expected_answer", "expected_output",
        "gold", "gold_answer", "ground_truth", "label", "oracle", "reference_answer", "secret", "solution",
        "solutions", "target", "targets",
    }
)  # fmt: skip
"""Keys of `hidden` whose values are taken for answers, in lower case."""


def no_secrets(state: State[Any]) -> list[str]:
    """Nothing is secret: for tasks whose answer is rightly part of what the model sees."""
    return []


def visible_texts(observation: Observation) -> Iterator[tuple[str, str]]:
    """All texts of an observation with their places, e.g. ``("messages[0].content", "...")``."""
    yield "prompt", observation.prompt
    if observation.task is not None:
        yield "task", observation.task
    for i, message in enumerate(observation.messages):
        yield f"messages[{i}].content", message.content
        for call in message.tool_calls:
            yield f"messages[{i}].tool_calls", f"{call.name} {dumps(dict(call.arguments))}"
        if message.metadata:
            yield f"messages[{i}].metadata", dumps(dict(message.metadata))
        for image in message.images:
            yield f"messages[{i}].images", image.url or ""
    for i, image in enumerate(observation.images):
        yield f"images[{i}]", image.url or ""
    for i, result in enumerate(observation.tool_results):
        yield f"tool_results[{i}].content", result.content
    for i, tool in enumerate(observation.available_tools):
        yield f"available_tools[{i}]", f"{tool.name} {tool.description} {dumps(dict(tool.parameters))}"


def occurs(secret: str, text: str) -> bool:
    """Whether `secret` is in `text` as whole words ("12" is not in "3.125", "cat" not in "category")."""
    if not secret.strip():
        return False
    pattern = rf"(?<!\w)(?<!\d[.,])(?<!\w[-']){re.escape(secret.strip())}(?!\w)(?![.,]\d)(?![-']\w)"
    return re.search(pattern, text) is not None


def answers(hidden: Any) -> Iterator[tuple[str, str]]:
    """``(key, text)`` of what stands under one of `ANSWER_KEYS` anywhere in `hidden`."""
    if isinstance(hidden, Mapping):
        for key, value in hidden.items():
            if isinstance(key, str) and key.lower() in ANSWER_KEYS:
                text = _text(value)
                if text:
                    yield key, text
            else:
                yield from answers(value)
    elif isinstance(hidden, list | tuple):
        for item in hidden:
            yield from answers(item)


def _text(value: Any) -> str:
    """An answer as a prompt would have it; lists and the like as Python prints them, "" for None and flags."""
    if value is None or isinstance(value, bool):
        return ""
    return str(value).strip() if isinstance(value, str | Real) else repr(value)


def holders(hidden: Any) -> Iterator[Mapping[Any, Any]]:
    """The mappings in `hidden`, itself included, that hold an answer under one of `ANSWER_KEYS`."""
    if isinstance(hidden, Mapping):
        if any(isinstance(key, str) and key.lower() in ANSWER_KEYS for key in hidden):
            yield hidden
        for value in hidden.values():
            yield from holders(value)
    elif isinstance(hidden, list | tuple):
        for item in hidden:
            yield from holders(item)


def dumped(hidden: Any) -> Iterator[str]:
    """The texts that printing what holds an answer would give."""
    for holder in holders(hidden):
        yield repr(holder)
        try:
            yield json.dumps(holder)
        except (TypeError, ValueError):  # not plain JSON, then our own form of it
            yield dumps(dict(holder))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kind of place where an answer gives itself away.

    `marks` are what to look for given the hidden state; `shows` says whether a text has one of them.
    """

    what: str
    marks: Callable[[Any], set[Any]]
    shows: Callable[[Any, str], bool]

    def found(self, states: Sequence[State[Any]]) -> str | None:
        """The place where all of `states`, first states of different tasks, show their own marks alone."""
        marks = [self.marks(state.hidden) for state in states]
        if not all(marks) or len({frozenset(m) for m in marks}) < 2:
            return None
        places: dict[str, int] = {}
        for own, state in zip(marks, states, strict=True):
            foreign = set().union(*marks) - own
            for place, text in visible_texts(state.observation):
                if any(self.shows(mark, text) for mark in foreign):
                    return None
                if any(self.shows(mark, text) for mark in own):
                    places[place] = places.get(place, 0) + 1
        everywhere = [place for place, count in places.items() if count == len(states)]
        return everywhere[0] if everywhere else None


def _beside_its_key(mark: tuple[str, str], text: str) -> bool:
    key, value = mark
    pattern = rf"(?<!\w){re.escape(key)}\W{{1,4}}{re.escape(value)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _at_an_end(mark: tuple[str, str], text: str) -> bool:
    text, value = text.strip(), re.escape(mark[1])
    return re.search(rf"\A{value}(?!\w)|(?<!\w){value}\W{{0,2}}\Z", text) is not None


_TELLING = (
    r"(?:\b(?:answers?|solutions?|results?|hints?|secret|truth|expected|correct)\b[^.?!\n]{0,40}?"
    r"|\b(?:it|this)\s+is\W{1,3})"
)


def _told(mark: tuple[str, str], text: str) -> bool:
    return re.search(rf"{_TELLING}(?<!\w){re.escape(mark[1])}(?!\w)", text, re.IGNORECASE) is not None


EVIDENCE: tuple[Evidence, ...] = (
    Evidence("a dump of the hidden state", lambda h: set(dumped(h)), lambda mark, text: mark in text),
    Evidence("the answer beside its key", lambda h: set(answers(h)), _beside_its_key),
    Evidence("the answer as first or last words", lambda h: set(answers(h)), _at_an_end),
    Evidence("the answer in words that tell it", lambda h: set(answers(h)), _told),
)
