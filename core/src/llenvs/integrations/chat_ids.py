"""Token ids of a chat made from text, for turns whose ids the engine did not give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

from llenvs.core.errors import LLEnvsError
from llenvs.core.generation import FinishReason, Generation
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.local.chat_template import RenderedPrompt, template_message
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.tool_calls import HermesToolCallParser, ToolCallParser
from llenvs.integrations.control_text import END_OF_TURN
from llenvs.integrations.family_renderer import AUTO, chosen_renderer


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
        renderer: Any = AUTO,
        parser: ToolCallParser | None = None,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.renderer = chosen_renderer(renderer, tokenizer, template_options)
        self.tokenizer = ChatTokenizer(
            tokenizer,
            parser or HermesToolCallParser(),
            backend="TrajectoryMasker",
            template_options=template_options,
        )
        vocabulary = tokenizer.get_added_vocab()
        self.ends = frozenset(vocabulary[text] for text in END_OF_TURN if text in vocabulary)
        """Ids that end a turn: the end-of-sequence token, and those of common chat formats."""
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
        index = first_difference(read, told.text)
        if index is not None:
            raise PrefixBreak(turn.step, index, "characters; the template renders the answer otherwise")
        ids = self._encoded(told, len(read))
        end = next((number for number, token in enumerate(ids) if token in self.ends), None)
        if end is None:
            return ids
        return ids[:end] if turn.was_cut else ids[: end + 1]

    def next_prompt(self, have: tuple[int, ...], prompt_length: int, before: Turn, turn: Turn) -> tuple[int, ...]:
        """The prompt of `turn`, made from the ids so far and the messages that came since `before`.

        Args:
            have: prompt and answers so far.
            prompt_length: how many of them are the first prompt's.
            before: the turn before `turn`.
            turn: its messages begin with those of `before` and its answer.

        Raises:
            PrefixBreak: the template does not keep what was said.
        """
        if self.renderer is not None:
            made = self._by_renderer(have, prompt_length, before, turn)
            if made is not None:
                return made
        told = self._answered(before, turn.tools)
        read = self.tokenizer.render_chat(turn.messages, turn.tools)
        index = first_difference(told.text, read.text)
        if index is not None:
            raise PrefixBreak(turn.step, index, "characters of the chat template's output")
        tail = told.token_ids
        end = next((number for number in range(len(tail) - 1, -1, -1) if tail[number] in self.ends), None)
        after_end = "" if end is None else self.tokenizer.decode((), tail[end + 1 :], special=True)
        # an answer that was cut has no end of its own
        closing = () if end is None or have[-1] in self.ends else (tail[end],)
        return (*have, *closing, *self._encoded(read, len(told.text) - len(after_end)))

    def whole(self, turn: Turn) -> tuple[int, ...]:
        """The chat up to the end of the answer of `turn`, from its text alone."""
        ids = self._answered(turn, turn.tools).token_ids
        length = len(ids)
        while length and ids[length - 1] not in self.ends:  # what follows the end of a turn was never sampled
            length -= 1
        return ids[: length or None]

    def whole_text(self, turn: Turn) -> str:
        """The text whose ids `whole` gives, and what follows."""
        return self._answered(turn, turn.tools).text

    def places_of_answers(self, turn: Turn, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Where answers stand in the text of `whole`: of each the first character and the one after the last.

        Found by rendering the chat with another answer in its place, so a short answer is not taken for a part of
        the template, tool calls belong to it, and of an answer that the template cuts (thoughts) it is what is
        left.

        Args:
            turn: the last one.
            numbers: of the answers among its messages and its own answer, in order.

        Raises:
            PrefixBreak: the template writes tool results into the answer that called the tool.
        """
        chat = [*turn.messages, turn.answer]
        told = self.whole_text(turn)
        places = []
        for number in numbers:
            changed = [*chat[:number], ChatMessage("assistant", _OTHER_ANSWER), *chat[number + 1 :]]
            other = self.tokenizer.render_chat(changed, turn.tools, generation_prompt=False).text
            start = _alike(told, other)
            end = len(told) - _alike(told[start:][::-1], other[start:][::-1])
            # what an answer has in common with what the template writes around any (the tag of a thought) is its
            written = chat[number].content.strip()
            first = told.find(written, max(0, start - len(written)), end + len(written)) if written else -1
            if 0 <= first <= start:
                start, end = first, max(end, first + len(written))
            if number + 1 < len(chat) and self._begins(turn, number + 1, told) < end:
                raise PrefixBreak(
                    turn.step, start, "characters; the template writes what follows an answer into it"
                )
            places.append((start, end))
        return places

    def _begins(self, turn: Turn, number: int, told: str) -> int:
        """Where the content of a message begins in `told`, the text of the chat."""
        chat = [*turn.messages, turn.answer]
        changed = [*chat[:number], replace(chat[number], content=_OTHER_ANSWER), *chat[number + 1 :]]
        return _alike(told, self.tokenizer.render_chat(changed, turn.tools, generation_prompt=False).text)

    def _encoded(self, rendered: RenderedPrompt, start: int) -> tuple[int, ...]:
        """Ids of a text from character `start` on; texts of control tokens in contents are no control tokens."""
        ids: list[int] = []
        position = 0
        for text, special in rendered.pieces:
            ids += self.tokenizer.encode(text[max(0, start - position) :], special)
            position += len(text)
        return tuple(ids)

    def _answered(self, turn: Turn, tools: Sequence[ToolDefinition]) -> RenderedPrompt:
        chat = [*turn.messages, turn.answer]
        return self.tokenizer.render_chat(chat, tools, generation_prompt=False)

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


_OTHER_ANSWER = "\ue000\ue001\ue000"
"""An answer that begins and ends as no other does (private use characters)."""


def _alike(one: str, other: str) -> int:
    """With how many characters both begin."""
    return len(commonprefix([one, other]))
