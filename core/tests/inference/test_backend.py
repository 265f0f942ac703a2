"""The protocol, by means of backends small enough to see through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import pytest

from llenvs.core.errors import BackendNotInstalled, InvalidOption, UnknownBackend, UnknownOption
from llenvs.core.generation import Generation
from llenvs.inference import Backend, Capabilities, ChatMessage, GenerationRequest, SamplingParams, ScriptedBackend
from llenvs.inference import backends as registry
from llenvs.inference.backends import (
    backend_class,
    describe_backend,
    installable_backends,
    list_backends,
    make_backend,
)
from llenvs.inference.errors import UnsupportedFeature

USER = (ChatMessage.user("hi"),)


class Telling(Backend):
    """Tells the seed of each sample, and how many requests are under way."""

    name: ClassVar[str] = "telling"
    capabilities = Capabilities(seed=True)

    def __init__(self, *, native_n: bool = False, max_concurrency: int = 64) -> None:
        super().__init__("m", max_concurrency=max_concurrency)
        self.capabilities = Capabilities(seed=True, native_n=native_n)
        self.requests: list[tuple[int | None, int]] = []
        self.under_way = self.most_under_way = 0

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        self.requests.append((request.sampling.seed, n))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= 1
        return [Generation(text=f"{request.messages[-1].content}/{request.sampling.seed}/{i}") for i in range(n)]


def request(**sampling: object) -> GenerationRequest:
    return GenerationRequest(USER, SamplingParams.model_validate(sampling))


def test_samples_as_single_requests_use_consecutive_seeds() -> None:
    backend = Telling()
    samples = asyncio.run(backend.sample(request(seed=7), 3))
    assert [sample.text for sample in samples] == ["hi/7/0", "hi/8/0", "hi/9/0"]
    assert asyncio.run(backend.sample(request(), 2))[1].text == "hi/None/0"


def test_samples_as_one_request_where_the_engine_can() -> None:
    backend = Telling(native_n=True)
    assert len(asyncio.run(backend.sample(request(seed=7), 3))) == 3
    assert backend.requests == [(7, 3)]
    with pytest.raises(ValueError, match="at least 1"):
        asyncio.run(backend.sample(request(), 0))


def test_chat_batch_keeps_the_order_and_the_limit() -> None:
    backend = Telling(max_concurrency=3)
    answers = backend.chat_batch([str(i) for i in range(20)])
    assert [answer.text for answer in answers] == [f"{i}/None/0" for i in range(20)]
    assert backend.most_under_way == 3


@pytest.mark.parametrize(
    ("fields", "feature"),
    [
        ({"sampling": SamplingParams(logprobs=0)}, "logprobs"),
        ({"sampling": SamplingParams(top_k=1)}, "top_k"),
        ({"sampling": SamplingParams(min_p=0.1)}, "min_p"),
        ({"sampling": SamplingParams(presence_penalty=0.0)}, "penalties"),
        ({"sampling": SamplingParams(frequency_penalty=1.0)}, "penalties"),
        ({"sampling": SamplingParams(reasoning_effort="low")}, "reasoning_effort"),
        ({"prefix": "The"}, "prefix"),
        ({"grammar": 'root ::= "a"'}, "grammar"),
        ({"json_schema": {}}, "json_schema"),
    ],
)
def test_what_a_backend_lacks_is_refused_before_anything_is_sent(fields: dict[str, object], feature: str) -> None:
    backend = Telling()
    for act in (backend.generate, lambda r: backend.sample(r, 2)):
        with pytest.raises(UnsupportedFeature, match=f"telling: does not support {feature}") as caught:
            asyncio.run(act(GenerationRequest(USER, **fields)))  # type: ignore[arg-type, operator]
        assert caught.value.feature == feature
    assert backend.requests == []


def test_neutral_values_need_no_feature() -> None:
    Capabilities().check(request(top_k=0, min_p=0.0, temperature=0.5, top_p=0.9, max_tokens=3), "b")
    with pytest.raises(UnsupportedFeature, match="at most 5 alternatives"):
        Capabilities(logprobs=True, max_top_logprobs=5).check(request(logprobs=6), "b")


def test_a_request_ends_with_the_other_side() -> None:
    with pytest.raises(ValueError, match="at least one message"):
        GenerationRequest(())
    with pytest.raises(ValueError, match="give its text as prefix"):
        GenerationRequest((*USER, ChatMessage.assistant("The")))


def test_sampling_defaults() -> None:
    defaults = SamplingParams(temperature=0.5, max_tokens=10, stop=("a",), extra={"x": 1, "y": 1})
    merged = SamplingParams(temperature=0.0, stop="b", extra={"y": 2}).with_defaults(defaults)
    assert merged == SamplingParams(temperature=0.0, max_tokens=10, stop=("b",), extra={"x": 1, "y": 2})
    assert SamplingParams().with_defaults(defaults) == defaults


def test_scripted_answers() -> None:
    assert ScriptedBackend("same").chat("hi").text == "same"
    turns = ScriptedBackend(["a", "b"])
    assert [turns.chat("hi").text for _ in range(3)] == ["a", "b", "a"]
    echo = ScriptedBackend(lambda request: request.messages[-1].content.upper())
    answer = echo.chat("two words")
    assert (answer.text, answer.usage.prompt_tokens, answer.usage.completion_tokens) == ("TWO WORDS", 2, 2)
    exact = Generation(text="exact", model="other")
    assert ScriptedBackend(lambda request: exact).chat("hi") is exact

    def refuse(request: GenerationRequest) -> str:
        raise UnsupportedFeature("scripted", "politeness")

    with pytest.raises(UnsupportedFeature):
        ScriptedBackend(refuse).chat("hi")


def test_backends_by_name() -> None:
    assert "scripted" in list_backends()
    assert backend_class("scripted") is ScriptedBackend
    assert make_backend("scripted", script="x").chat("hi").text == "x"
    with pytest.raises(UnknownBackend, match="did you mean 'scripted'"):
        make_backend("scriptd")
    with pytest.raises(UnknownOption, match="did you mean 'latency'"):
        make_backend("scripted", latencey=1)


def test_what_a_backend_is_and_takes() -> None:
    described = describe_backend("scripted")
    assert described.description.startswith("Answers by script.")
    options = {option.name: option for option in described.options}
    assert list(options)[-2:] == ["budget", "cache"]  # of every backend
    assert (options["latency"].type, options["latency"].default) == ("float", "0.0")
    assert options["latency"].description == "seconds to wait before each answer."
    with pytest.raises(UnknownBackend, match="did you mean 'scripted'"):
        describe_backend("scriptd")


def test_what_a_class_leaves_to_its_base_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base(Telling):
        """A base.

        Args:
            model: the model.
            size: of it,
                in metres.
        """

    class Own(Base):
        """My own.

        Says more.

        Args:
            size: of mine.
        """

        def __init__(self, model: str, *, size: int = 1, color: str | None = None) -> None:
            super().__init__()

    monkeypatch.setattr(registry, "backend_class", lambda name: Own)
    described = describe_backend("own")
    assert described.description == "My own.\n\nSays more."
    model, size, color = described.options[:3]
    assert (model.default, model.description) == ("required", "the model.")
    assert (size.default, size.description) == ("1", "of mine.")
    assert (color.type, color.default, color.description) == ("str | None", "None", "")


def test_a_backend_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", dict)
    with pytest.raises(BackendNotInstalled, match=r'pip install "llenvs\[openai\]"'):
        make_backend("openai", model="m")
    assert installable_backends()["llamacpp"] == 'pip install "llenvs[llamacpp]"'


def test_options_that_a_class_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Picky(Telling):
        def __init__(self, model: str, size: int = 1) -> None:
            if size < 1:
                raise ValueError("size must be positive")
            super().__init__()

    monkeypatch.setattr(registry, "backend_class", lambda name: Picky)
    with pytest.raises(InvalidOption, match=r"model\.model: backend picky needs it"):
        make_backend("picky")
    with pytest.raises(InvalidOption, match="size must be positive"):
        make_backend("picky", model="m", size=0)
