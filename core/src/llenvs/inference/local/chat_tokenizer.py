"""From chats to token ids and back, by a tokenizer of transformers."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.errors import BadRequest, EngineUnavailable
from llenvs.inference.local.chat_template import KeptApart, RenderedPrompt, template_message
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls import ToolCallParser, render_chat
from llenvs.inference.tool_calls.rendering import as_written

_CONTEXT = 8  # tokens before a piece of text that decide how it is spelled (a space, half a character)
_PROBE = ToolDefinition("probe_of_template")


class ChatTokenizer:
    """Renders requests to prompts and spells token ids, the same for every engine with such a tokenizer.

    Tools are rendered by the model's chat template where it knows tools, else described in the system message as
    `parser` does. What a model wrote with tool calls in it goes back word for word, so that the token ids of a
    further turn continue those of the last.

    Args:
        tokenizer: a ``transformers.PreTrainedTokenizerBase``. May be used from several threads.
        parser: the form of tool calls.
        backend: named in errors.
        chat_template: Jinja text that replaces the model's own.
        template_options: further variables of the template, e.g. ``{"enable_thinking": False}``.
        parse_special: whether the text of a control token inside a message's content becomes that token.
    """

    def __init__(
        self,
        tokenizer: Any,
        parser: ToolCallParser,
        *,
        backend: str,
        chat_template: str | None = None,
        template_options: Mapping[str, Any] | None = None,
        parse_special: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.parser = parser
        self._backend = backend
        self._chat_template = chat_template
        self._template_options = dict(template_options or {})
        self._lock = threading.RLock()  # a fast tokenizer is changed by each call
        self._spelled: dict[int, str] = {}
        self._control_text = None if parse_special else _control_text(tokenizer)

    @cached_property
    def knows_tools(self) -> bool:
        """Whether the chat template says anything about tools."""
        message = [{"role": "user", "content": "probe"}]
        return self._apply(message, (_PROBE,)) != self._apply(message, ())

    def render(self, request: GenerationRequest) -> RenderedPrompt:
        """The prompt of `request`, its prefix included.

        Raises:
            BadRequest: the template refuses the messages.
            EngineUnavailable: the model has no chat template.
        """
        tools = () if request.tool_choice == "none" else request.tools
        chat = self.render_chat(request.messages, tools)
        return RenderedPrompt(chat.text + request.prefix, (*chat.token_ids, *self.encode(request.prefix)))

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolDefinition] = (),
        *,
        generation_prompt: bool = True,
    ) -> RenderedPrompt:
        """A chat as the model reads it.

        Args:
            messages: the last of them may be from the assistant.
            tools: what it is told that it may call.
            generation_prompt: whether the beginning of an assistant's turn follows.

        Raises:
            BadRequest, EngineUnavailable: see `render`.
        """
        messages = tuple(messages)
        if not tools and not any(message.tool_calls or message.role == "tool" for message in messages):
            pass
        elif self.knows_tools:
            messages = tuple(self._as_written(message) for message in messages)
        else:
            messages, tools = render_chat(messages, tools, self.parser), ()
        apart = KeptApart.of([template_message(each, "mapping") for each in messages], self._control_text)
        pieces = apart.pieces(self._apply(apart.messages, tools, generation_prompt), self._backend)
        ids = [token for text, special in pieces for token in self.encode(text, special)]
        return RenderedPrompt("".join(text for text, _ in pieces), tuple(ids), tuple(pieces))

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Ids of `text`, nothing added. `special`: whether control tokens written out in it are taken as such."""
        if not text:
            return []
        with self._lock:
            ids: list[int] = self.tokenizer(
                text, add_special_tokens=False, split_special_tokens=not special
            ).input_ids
            return ids

    def decode(self, before: Sequence[int], ids: Sequence[int], special: bool = False) -> str:
        """Text of `ids` as it reads after `before`; control tokens left out unless `special`.

        What precedes matters: many vocabularies drop the space at the start of a text.
        """
        context = list(before[-_CONTEXT:])
        with self._lock:
            alone, whole = (
                self.tokenizer.decode(tokens, skip_special_tokens=not special, clean_up_tokenization_spaces=False)
                for tokens in (context, [*context, *ids])
            )
            if whole.startswith(alone):
                return str(whole[len(alone) :])
            # the context ends inside a character
            return str(
                self.tokenizer.decode(
                    list(ids), skip_special_tokens=not special, clean_up_tokenization_spaces=False
                )
            )

    def spelled(self, token: int) -> str:
        """Text of one token inside a text, control tokens written out; half a character is U+FFFD."""
        if token not in self._spelled:
            self._spelled[token] = self.decode(self._anchor, [token], special=True)
        return self._spelled[token]

    @cached_property
    def _anchor(self) -> list[int]:
        return self.encode("a")

    def _as_written(self, message: ChatMessage) -> ChatMessage:
        if not message.tool_calls:
            return message
        written = as_written(message, self.parser)
        if written is None or (self._control_text is not None and self._control_text.search(written)):
            return message
        return replace(message, content=written, tool_calls=())

    def _apply(
        self, messages: list[dict[str, Any]], tools: Sequence[ToolDefinition], generation_prompt: bool = True
    ) -> str:
        if self._chat_template is None and not self.tokenizer.chat_template:
            raise EngineUnavailable(
                self._backend, "the model has no chat template; give one as chat_template=..., in Jinja"
            )
        import jinja2

        try:
            with self._lock:
                rendered: str = self.tokenizer.apply_chat_template(
                    messages,
                    tools=[tool.to_openai() for tool in tools] or None,
                    chat_template=self._chat_template,
                    add_generation_prompt=generation_prompt,
                    tokenize=False,
                    **self._template_options,
                )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
            raise BadRequest(self._backend, f"the model's chat template refuses the messages: {error}") from error
        return rendered


def _control_text(tokenizer: Any) -> re.Pattern[str] | None:
    added = tokenizer.added_tokens_decoder.values()
    texts = {str(token.content) for token in added if token.special} | set(tokenizer.all_special_tokens)
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True)))) if texts else None
