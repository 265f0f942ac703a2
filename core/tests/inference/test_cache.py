"""Generations kept on disk."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.inference import (
    Backend,
    Capabilities,
    ChatMessage,
    FinishReason,
    Generation,
    GenerationRequest,
    HermesToolCallParser,
    ImageContent,
    PromptedToolsBackend,
    SamplingParams,
    ScriptedBackend,
    TokenLogprob,
    Usage,
)
from llenvs.inference.cache import key_of
from llenvs.inference.errors import ProviderFailed

GREEDY = SamplingParams(temperature=0.0)
HOT = SamplingParams(temperature=1.0)


class Counting(Backend):
    """Every answer is another one; some fail."""

    name: ClassVar[str] = "counting"
    capabilities = Capabilities(seed=True, native_n=True, logprobs=True, max_top_logprobs=5, prefix=True)

    def __init__(self, model: str = "m", sampling: SamplingParams | None = None) -> None:
        super().__init__(model)
        self._sampling = sampling or SamplingParams()
        self.numbers = itertools.count()
        self.asked = 0
        self.fails_at: set[int] = set()
        self.finish = FinishReason.STOP

    def identity(self) -> Mapping[str, Any]:
        return {"backend": self.name, "model": self.model, "sampling": self._sampling.model_dump()}

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        self.asked += 1
        if self.asked in self.fails_at:
            raise ProviderFailed(self.name, "broken")
        return [
            Generation(
                text=f"answer {next(self.numbers)}",
                tool_calls=(ToolCall("f", {"a": [1, None, "ä"]}, "c1"),),
                finish_reason=self.finish,
                usage=Usage(3, 4, 1, 2, cost=0.25),
                prompt_token_ids=(1, 2),
                completion_token_ids=(3, 4),
                logprobs=(TokenLogprob("x", -0.1, 3, (("x", -0.1), ("y", -2.5))),),
                reasoning="hm",
                model="m-1",
                latency=0.5,
                metadata={"id": "1", "raw": {"b": b"\x00"}},
            )
            for _ in range(n)
        ]


def asked(text: str = "hi", sampling: SamplingParams = GREEDY, **fields: Any) -> GenerationRequest:
    return GenerationRequest((ChatMessage.user(text),), sampling, **fields)


def test_the_same_request_is_answered_once(tmp_path: Path) -> None:
    first = Counting().use(cache=tmp_path / "cache")
    fresh = first.generate_sync(asked())
    again = first.generate_sync(asked())
    second = Counting().use(cache=str(tmp_path / "cache"))  # another process, another day
    assert second.generate_sync(asked()) == again
    assert (first.asked, second.asked) == (1, 0)
    # everything is as it was, but for what it costs now
    assert again == replace(
        fresh, usage=replace(fresh.usage, cost=0.0), metadata={**fresh.metadata, "from_cache": True}
    )


def test_samples_stay_different_and_a_second_run_sees_the_same(tmp_path: Path) -> None:
    def run() -> tuple[list[str], int]:
        backend = Counting().use(cache=tmp_path)

        async def five() -> list[str]:
            return [
                each.text for each in await asyncio.gather(*(backend.generate(asked("q", HOT)) for _ in range(5)))
            ]

        return asyncio.run(five()), backend.asked

    first, count = run()
    assert len(set(first)) == count == 5
    second, count = run()
    assert (sorted(second), count) == (sorted(first), 0)


def test_a_seed_makes_an_answer_repeatable(tmp_path: Path) -> None:
    backend = Counting().use(cache=tmp_path)
    texts = [backend.generate_sync(asked("q", HOT.with_seed(seed))).text for seed in (1, 2, 1, 2)]
    assert texts == ["answer 0", "answer 1", "answer 0", "answer 1"]
    # greedy by default of the backend
    greedy = Counting(sampling=GREEDY).use(cache=tmp_path)
    assert greedy.generate_sync(asked("q", SamplingParams())) == replace(
        greedy.generate_sync(asked("q", SamplingParams())),
        usage=Usage(3, 4, 1, 2, cost=0.25),
        metadata={"id": "1", "raw": {"b": b"\x00"}},
    )
    assert greedy.asked == 1


def test_n_samples(tmp_path: Path) -> None:
    backend = Counting().use(cache=tmp_path)
    first = asyncio.run(backend.sample(asked("q", HOT), 3))
    second = asyncio.run(backend.sample(asked("q", HOT), 3))
    assert len({each.text for each in (*first, *second)}) == 6
    again = Counting().use(cache=tmp_path)
    assert [e.text for e in asyncio.run(again.sample(asked("q", HOT), 3))] == [e.text for e in first]
    assert (backend.asked, again.asked) == (2, 0)


IMAGE = ImageContent(data=b"a")
TOOL = ToolDefinition("f", "does", {"type": "object"})
OTHERS: dict[str, GenerationRequest] = {
    "text": asked("other"),
    "role": GenerationRequest((ChatMessage.system("hi"),), GREEDY),
    "turns": GenerationRequest(
        (ChatMessage.user("hi"), ChatMessage.assistant("a"), ChatMessage.user("hi")), GREEDY
    ),
    "image": GenerationRequest((ChatMessage.user("hi", (IMAGE,)),), GREEDY),
    "image data": GenerationRequest((ChatMessage.user("hi", (ImageContent(data=b"b"),)),), GREEDY),
    "metadata": GenerationRequest((ChatMessage("user", "hi", metadata={"signed": "x"}),), GREEDY),
    "temperature": asked(sampling=SamplingParams(temperature=0.5, seed=1)),
    "max_tokens": asked(sampling=GREEDY.model_copy(update={"max_tokens": 5})),
    "seed": asked(sampling=GREEDY.with_seed(1)),
    "stop": asked(sampling=GREEDY.model_copy(update={"stop": ("a",)})),
    "stops": asked(sampling=GREEDY.model_copy(update={"stop": ("a", "b")})),
    "logprobs": asked(sampling=GREEDY.model_copy(update={"logprobs": 0})),
    "extra": asked(sampling=GREEDY.model_copy(update={"extra": {"a": 1}})),
    "tools": asked(tools=(TOOL,)),
    "tool": asked(tools=(replace(TOOL, description="does not"),)),
    "tool_choice": asked(tools=(TOOL,), tool_choice="required"),
    "prefix": asked(prefix="The"),
    "grammar": asked(grammar='root ::= "a"'),
    "json_schema": asked(json_schema={"type": "integer"}),
    "as before": asked(),
}


def test_everything_that_matters_is_in_the_key() -> None:
    identity = Counting().identity()
    keys = {key_of(identity, request, 1) for request in OTHERS.values()}
    assert len(keys) == len(OTHERS)
    for other in (Counting("another"), Counting(sampling=HOT)):
        assert key_of(other.identity(), asked(), 1) not in keys
    assert key_of(identity, asked(), 2) not in keys
    assert key_of(identity, asked(), 1) in keys
    # the order in which a schema is written does not
    one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert key_of(identity, asked(json_schema=one), 1) == key_of(identity, asked(json_schema=two), 1)


def test_later_turns_are_found_after_a_turn_that_was_found(tmp_path: Path) -> None:
    def run() -> int:
        backend = Counting().use(cache=tmp_path)
        first = backend.generate_sync(asked())
        messages = (ChatMessage.user("hi"), first.to_message(), ChatMessage("tool", "1", tool_call_id="c1"))
        backend.generate_sync(GenerationRequest(messages, GREEDY))
        return backend.asked

    assert [run(), run()] == [2, 0]


def test_errors_and_cancelled_answers_are_not_kept(tmp_path: Path) -> None:
    backend = Counting().use(cache=tmp_path)
    backend.fails_at = {1}
    with pytest.raises(ProviderFailed):
        backend.generate_sync(asked("q", HOT))
    assert backend.generate_sync(asked("q", HOT)).text == "answer 0"
    # the place of the one that failed was taken again: a second run finds the answer first
    assert Counting().use(cache=tmp_path).generate_sync(asked("q", HOT)).text == "answer 0"
    backend.finish = FinishReason.CANCELLED
    assert backend.generate_sync(asked()).text != backend.generate_sync(asked()).text


def test_a_broken_file_is_asked_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = Counting().use(cache=tmp_path)
    backend.generate_sync(asked())
    (file,) = tmp_path.glob("??/*.json")
    for text in ('{"form', "[]", '{"format":1,"generations":3}', "\xff"):
        file.write_text(text, encoding="latin-1")
        with caplog.at_level(logging.WARNING):
            backend.generate_sync(asked())
    assert backend.asked == 5
    assert "cannot be read" in caplog.text
    assert backend.generate_sync(asked()).metadata["from_cache"] is True
    assert list(tmp_path.rglob("*.part")) == []


def test_a_found_answer_takes_nothing_from_the_budget(tmp_path: Path) -> None:
    backend = Counting().use(cache=tmp_path, budget={"requests_per_minute": 1})
    assert len({backend.generate_sync(asked()).text for _ in range(10)}) == 1  # would last ten minutes


def test_under_a_backend_that_stands_on_it(tmp_path: Path) -> None:
    inner = Counting().use(cache=tmp_path)
    outer = PromptedToolsBackend(inner, HermesToolCallParser())
    outer.chat("hi", GREEDY, tools=(TOOL,))
    assert outer.chat("hi", GREEDY, tools=(TOOL,)).metadata["from_cache"] is True
    assert inner.asked == 1


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="backend scripted does not say what decides its answers"):
        ScriptedBackend("ok").use(cache=tmp_path).chat("hi")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOption, match="is a file"):
        Counting().use(cache=tmp_path / "file")
    with pytest.raises(InvalidOption, match="path of a folder"):
        Counting().use(cache=7)  # type: ignore[arg-type]
