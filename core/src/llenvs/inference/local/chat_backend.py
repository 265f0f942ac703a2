"""Backends with an engine that reads token ids, in front of which a tokenizer of transformers stands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from llenvs.inference.errors import ContextOverflow
from llenvs.inference.local.chat_template import RenderedPrompt
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.local.engine_backend import LocalEngineBackend
from llenvs.inference.local.versions import versions_of
from llenvs.inference.loop import run_sync
from llenvs.inference.option_checks import check_mappings, check_texts
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import ToolCallParser, make_parser


@dataclass(frozen=True)
class ChatEngine:
    """An engine that is ready.

    Attributes:
        chat: renders chats and spells token ids.
        n_ctx: tokens of prompt and answer together, at most.
    """

    chat: ChatTokenizer
    n_ctx: int


ChatEngineT = TypeVar("ChatEngineT", bound=ChatEngine)


class ChatEngineBackend(LocalEngineBackend[ChatEngineT]):
    """A backend that renders chats itself, so that the exact ids of a prompt are known and can be looked at.

    Whoever writes one gives `packages` beside what `LocalEngineBackend` asks for; `_start_engine` makes the
    tokenizer by `_chat_tokenizer`, `_generate` asks `_ready` for the engine and `_prompt` for what it reads.

    Args:
        model: its name in results.
        max_concurrency: of `chat_batch` and evaluations.
        tool_parser: the form in which the model calls tools, by name or made.
        chat_template: Jinja text that replaces the model's own chat template.
        template_options: further variables of the template.
        parse_special: whether the text of a control token inside a message's content becomes that token.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
    """

    packages: ClassVar[tuple[str, ...]]
    """Distributions of which another version may give other answers."""

    def __init__(
        self,
        model: str,
        *,
        max_concurrency: int,
        tool_parser: str | ToolCallParser,
        chat_template: str | None,
        template_options: Mapping[str, Any] | None,
        parse_special: bool,
        sampling: SamplingParams | Mapping[str, Any] | None,
    ) -> None:
        check_texts(chat_template=chat_template)
        check_mappings(template_options=template_options)
        super().__init__(model, max_concurrency=max_concurrency)
        self._parser = make_parser(tool_parser)
        self._chat_template = chat_template
        self._template_options = dict(template_options or {})
        self._parse_special = parse_special
        self._sampling = SamplingParams.of(sampling)

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            "backend": self.name,
            "parser": self._parser.name,
            "template": [self._chat_template, self._template_options, self._parse_special],
            "sampling": self._sampling.model_dump(),
            "versions": versions_of(*self.packages),
        }

    # -- tokens and prompts -------------------------------------------------------------------------------

    async def arender(self, request: GenerationRequest) -> RenderedPrompt:
        """The prompt of `request` as the model reads it, text and ids, prefix included. Generates nothing.

        An image is one placeholder here; a generation's own prompt ids have all its tokens.
        """
        engine = await self._ready(request)
        return await asyncio.to_thread(engine.chat.render, request)

    def render(self, request: GenerationRequest) -> RenderedPrompt:
        """`arender` for code without a loop."""
        return run_sync(self.arender(request))

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Ids of `text`, control tokens written out in it taken as text, nothing added."""
        return tuple(run_sync(self._started()).chat.encode(text))

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`, control tokens written out."""
        return run_sync(self._started()).chat.decode((), token_ids, special=True)

    # -- for the engine at hand ---------------------------------------------------------------------------

    def _chat_tokenizer(self, tokenizer: Any) -> ChatTokenizer:
        """What renders chats by a ``transformers.PreTrainedTokenizerBase`` and this backend's options."""
        return ChatTokenizer(
            tokenizer,
            self._parser,
            backend=self.name,
            chat_template=self._chat_template,
            template_options=self._template_options,
            parse_special=self._parse_special,
        )

    async def _ready(self, request: GenerationRequest) -> ChatEngineT:
        """The engine for `request`, which is refused before a start if that is known by then."""
        self.capabilities.check(request, self.name)
        engine = await self._started()
        self.capabilities.check(request, self.name)  # a start may show what the model lacks
        return engine

    async def _prompt(self, engine: ChatEngineT, request: GenerationRequest) -> tuple[RenderedPrompt, int]:
        """The prompt of `request`, and the tokens of context that it leaves for the answer, >= 1.

        Raises:
            ContextOverflow: it leaves none.
        """
        prompt = await asyncio.to_thread(engine.chat.render, request)
        room = engine.n_ctx - len(prompt.token_ids)
        if room < 1:
            raise ContextOverflow(
                self.name,
                f"the prompt has {len(prompt.token_ids)} tokens, which leaves no room for an answer in the "
                f"context of {engine.n_ctx}",
            )
        return prompt, room
