"""Token ids of a chat made from text, for turns whose ids the engine did not give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import LLEnvsError
from llenvs.core.generation import FinishReason, Generation
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.local.chat_template import template_message
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.tool_calls import HermesToolCallParser, ToolCallParser

# the end-of-turn tokens of common chat formats, for tokenizers whose end-of-sequence token is another
_END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|return|>", "<|call|>")


class PrefixBreak(LLEnvsError):
    """What the model read at a turn does not begin with all that came before, so the turns are not one sequence.

    It happens when the chat template leaves out earlier thoughts, when ids were made anew from text, or when an
    environment rewrites its chat. Attributes: `turn`, the action before which it happened; `index`, the first
    token that differs.
    """

    def __init__(self, turn: int, index: int, detail: str = "") -> None:
        self.turn = turn
        self.index = index
        super().__init__(
            f"the prompt of turn {turn} differs at token {index} from what came before it"
            f"{f' ({detail})' if detail else ''}: the trajectory is not one sequence. Take mask_sequences with "
            'on_prefix_break="split" for one sequence per part, a chat template that keeps earlier turns, or '
            '"retokenize" to train on ids that were never sampled'
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """One action: what was read before it and what was said.

    Attributes:
        step: index of the action.
        messages: the chat that the model read.
        tools: what it was told that it may call.
        answer: what it said, as a message.
        generation: with its ids, where they are known.
        reward: of the step.
    """

    step: int
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...]
    answer: ChatMessage
    generation: Generation
    reward: float

    @property
    def was_cut(self) -> bool:
        """Whether the token limit ended the answer."""
        return self.generation.finish_reason is FinishReason.LENGTH


class ChatIds:
    """Makes ids of turns by the chat template of a tokenizer."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        renderer: Any = None,
        parser: ToolCallParser | None = None,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.renderer = renderer
        self.tokenizer = ChatTokenizer(
            tokenizer,
            parser or HermesToolCallParser(),
            backend="TrajectoryMasker",
            template_options=template_options,
        )
        vocabulary = tokenizer.get_added_vocab()
        self.ends = frozenset(vocabulary[text] for text in _END_OF_TURN if text in vocabulary)
        """Ids that end a turn."""
        if tokenizer.eos_token_id is not None:
            self.ends |= {tokenizer.eos_token_id}

    def prompt(self, turn: Turn) -> tuple[int, ...]:
        """What was read before the answer of `turn`."""
        return self.tokenizer.render_chat(turn.messages, turn.tools).token_ids

    def answer(self, turn: Turn) -> tuple[int, ...]:
        """What must have been sampled: the template's text of the answer, up to its end-of-turn token.

        Raises:
            PrefixBreak: the template writes the chat otherwise once it is answered.
        """
        read = self.tokenizer.render_chat(turn.messages, turn.tools).text
        told = self._answered(turn, turn.tools)
        index = first_difference(read, told)
        if index is not None:
            raise PrefixBreak(turn.step, index, "characters; the template renders the answer otherwise")
        ids = tuple(self.tokenizer.encode(told[len(read) :], special=True))
        end = next((number for number, token in enumerate(ids) if token in self.ends), None)
        if end is None:
            return ids
        return ids[:end] if turn.was_cut else ids[: end + 1]

    def next_prompt(self, have: tuple[int, ...], prompt_length: int, before: Turn, turn: Turn) -> tuple[int, ...]:
        """The prompt of `turn`, made from the ids so far and the messages that came since `before`.

        Args:
            have: prompt and answers so far.
            prompt_length: how many of them are the first prompt's.

        Raises:
            PrefixBreak: the template does not keep what was said.
        """
        if self.renderer is not None:
            made = self._by_renderer(have, prompt_length, before, turn)
            if made is not None:
                return made
        told = self._answered(before, turn.tools)
        read = self.tokenizer.render_chat(turn.messages, turn.tools).text
        index = first_difference(told, read)
        if index is not None:
            raise PrefixBreak(turn.step, index, "characters of the chat template's output")
        tail = self.tokenizer.encode(told, special=True)
        end = next((number for number in range(len(tail) - 1, -1, -1) if tail[number] in self.ends), None)
        after_end = "" if end is None else self.tokenizer.decode((), tail[end + 1 :], special=True)
        bridge = self.tokenizer.encode(after_end + read[len(told) :], special=True)
        # an answer that was cut has no end of its own
        closing = () if end is None or have[-1] in self.ends else (tail[end],)
        return (*have, *closing, *bridge)

    def whole(self, turn: Turn) -> tuple[int, ...]:
        """The chat up to the end of the answer of `turn`, from its text alone."""
        ids = list(self.tokenizer.encode(self._answered(turn, turn.tools), special=True))
        length = len(ids)
        while length and ids[length - 1] not in self.ends:  # what follows the end of a turn was never sampled
            length -= 1
        return tuple(ids[: length or None])

    def _answered(self, turn: Turn, tools: Sequence[ToolDefinition]) -> str:
        chat = [*turn.messages, turn.answer]
        return self.tokenizer.render_chat(chat, tools, generation_prompt=False).text

    def _by_renderer(
        self, have: tuple[int, ...], prompt_length: int, before: Turn, turn: Turn
    ) -> tuple[int, ...] | None:
        made = self.renderer.bridge_to_next_turn(
            list(have[:prompt_length]),
            list(have[prompt_length:]),
            [template_message(message, "mapping") for message in turn.messages[len(before.messages) + 1 :]],
            tools=[tool.to_openai() for tool in turn.tools] or None,
        )
        # None: it cannot prove that the prefix stays
        return None if made is None else tuple(getattr(made, "token_ids", made))


def first_difference(beginning: Sequence[Any], whole: Sequence[Any]) -> int | None:
    """Where `whole` stops to begin with `beginning` (of the same type); None when it begins with all of it."""
    if len(whole) >= len(beginning) and whole[: len(beginning)] == beginning:
        return None
    for index, (a, b) in enumerate(zip(beginning, whole, strict=False)):
        if a != b:
            return index
    return min(len(beginning), len(whole))
