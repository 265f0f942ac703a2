"""Base environments and a model whose tokens are known, handed out by fixtures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict

import pytest

from llenvs.core import (
    Action,
    Advance,
    Environment,
    EnvironmentSpec,
    FinishReason,
    Generation,
    Observation,
    Signal,
    SingleTurnEnvironment,
    Start,
    State,
    TokenLogprob,
    ToolCall,
    ToolEnvironment,
    Usage,
)
from llenvs.core.extraction import make_extractor
from llenvs.core.tool_environment import TaskStart
from llenvs.core.tools import Tool
from llenvs.inference import Backend, Capabilities, GenerationRequest


class Addition(SingleTurnEnvironment[dict[str, str]]):
    """Task i asks for i + 1; 1.0 for the right number between answer tags."""

    def __init__(self, size: int = 5) -> None:
        super().__init__(EnvironmentSpec("addition", "toys", success_signal="score"), make_extractor("tag_based"))
        self.size = size
        self.closed = 0

    @property
    def num_tasks(self) -> int:
        return self.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"What is {task_index} + 1?"), {"answer": str(task_index + 1)})

    def _score(self, hidden: dict[str, str], answer: str | None) -> Iterable[Signal]:
        yield Signal("score", reward=float(answer == hidden["answer"]))

    def close(self) -> None:
        self.closed += 1


class Guessing(Environment[dict[str, int]]):
    """Say the number; after each wrong one the environment says higher or lower. Three turns."""

    def __init__(self) -> None:
        spec = EnvironmentSpec("guessing", "toys", max_steps=3, is_multi_turn=True, success_signal="found")
        super().__init__(spec)

    @property
    def num_tasks(self) -> int:
        return 9

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation("Your guess?", task="Guess a number from 1 to 9."), {"number": task_index + 1})

    def _advance(self, state: State[dict[str, int]], action: Action) -> Advance:
        guess = self._guess(action)
        number = state.hidden["number"]
        words = "Say a number." if guess is None else "Higher." if guess < number else "Lower."
        return Advance(Observation(words), state.hidden, terminated=guess == number, resolved_action=action)

    def _signals(
        self, state: State[dict[str, int]], action: Action, next_state: State[dict[str, int]]
    ) -> Iterable[Signal]:
        yield Signal("found", reward=float(self._guess(action) == state.hidden["number"]))

    @staticmethod
    def _guess(action: Action) -> int | None:
        numbers = re.findall(r"\d+", action.text)
        return int(numbers[-1]) if numbers else None


class Safe(TypedDict):
    """Hidden state of `Locked`."""

    code: int
    tried: list[int]


def dial(hidden: Safe, number: int) -> tuple[str, Safe]:
    """Dial a number.

    Args:
        number: From 1 to 5.
    """
    hidden["tried"].append(number)
    return "open" if number == hidden["code"] else "locked", hidden


def leave(hidden: Safe) -> tuple[str, Safe]:
    """Go away."""
    return "bye", hidden


class Locked(ToolEnvironment[Safe]):
    """A safe that is opened by a tool; task i has the code i + 1."""

    def __init__(self, record_chat: bool = False) -> None:
        spec = EnvironmentSpec("locked", "toys", max_steps=4, is_multi_turn=True, success_signal="open")
        tools = [
            Tool.from_callable(dial, stateful=True),
            Tool.from_callable(leave, stateful=True, terminal=True),
        ]
        super().__init__(spec, tools, record_chat=record_chat)

    @property
    def num_tasks(self) -> int:
        return 5

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        return TaskStart("Open the safe.", Safe(code=task_index + 1, tried=[]))

    def _signals(self, state: State[Safe], action: Action, next_state: State[Safe]) -> Iterable[Signal]:
        return (Signal("open", reward=float(next_state.hidden["code"] in next_state.hidden["tried"])),)


class Reciter(Backend):
    """A model that says a given text, token by token, going on after the assistant prefix.

    Tokens are words with the white space before them; the end of the turn is a token too. `says` is the text, or a
    function of the request. With `merges` the prompt spells the prefix with other ids than the completion did.
    """

    name: ClassVar[str] = "reciter"
    END = 0

    def __init__(
        self,
        says: str | Callable[[GenerationRequest], str | tuple[str, tuple[ToolCall, ...]]],
        *,
        prefix: bool = True,
        token_ids: bool = True,
        merges: bool = False,
    ) -> None:
        super().__init__("reciter", max_concurrency=4)
        self.capabilities = Capabilities(
            prefix=prefix, token_ids=token_ids, logprobs=token_ids, max_top_logprobs=0, seed=True, tools=True
        )
        self.says = says
        self.merges = merges
        self.requests: list[GenerationRequest] = []
        self.ids: dict[str, int] = {}

    def spell(self, text: str) -> list[str]:
        return re.findall(r"\s*\S+|\s+\Z", text)

    def id_of(self, token: str) -> int:
        return self.ids.setdefault(token, len(self.ids) + 1)

    def text_of(self, ids: Sequence[int]) -> str:
        names = {number: token for token, number in self.ids.items()}
        return "".join(names.get(i, "") for i in ids)

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        self.requests.append(request)
        said = self.says if isinstance(self.says, str) else self.says(request)
        text, calls = said if isinstance(said, tuple) else (said, ())
        text = text.removeprefix(request.prefix)
        tokens = self.spell(text)
        limit = request.sampling.max_tokens
        ends = limit is None or len(tokens) < limit
        tokens = tokens if ends else tokens[:limit]
        ids = [self.id_of(token) for token in tokens] + [self.END] * ends
        chat = "|".join(f"{m.role}:{m.content}" for m in request.messages)
        prompt = [1000 + ord(c) % 100 for c in chat] + [
            self.id_of(token) + (500 if self.merges else 0) for token in self.spell(request.prefix)
        ]
        reason = FinishReason.LENGTH if not ends else FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        exact = self.capabilities.token_ids
        generation = Generation(
            "".join(tokens),
            calls if ends else (),
            reason,
            Usage(len(prompt), len(ids), cost=0.5),
            tuple(prompt) if exact else None,
            tuple(ids) if exact else None,
            tuple(TokenLogprob(t, -0.5, i) for t, i in zip([*tokens, "<end>"], ids, strict=False))
            if exact
            else None,
            model=self.model,
        )
        return [generation] * n


@pytest.fixture
def addition() -> type[Addition]:
    return Addition


@pytest.fixture
def guessing() -> type[Guessing]:
    return Guessing


@pytest.fixture
def locked() -> type[Locked]:
    return Locked


@pytest.fixture
def reciter() -> type[Reciter]:
    return Reciter
