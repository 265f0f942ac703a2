"""Token masks of trajectories: from the exact ids of the generations, or, without them, from the chat template."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation
from llenvs.core.message import ChatMessage
from llenvs.core.segmentation.response import is_segmented
from llenvs.core.trajectory import Trajectory
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.rollout import Rollout
from llenvs.inference.prompts import PromptBuilder
from llenvs.inference.tool_calls import ToolCallParser
from llenvs.integrations.chat_ids import ChatIds, PrefixBreak, Turn, first_difference
from llenvs.integrations.checks import whole
from llenvs.integrations.family_renderer import AUTO
from llenvs.integrations.masked_trajectory import MaskedTrajectory, TokenSource, TokenSpan
from llenvs.integrations.token_text import labelled, token_ends, token_range

OnPrefixBreak = Literal["error", "split", "retokenize"]


class MasksFromText(UserWarning):
    """Ids were made from text and differ from what tokenising the whole gives, or from what was sampled."""


@dataclass
class _Sequence:
    """A sequence being built."""

    first_step: int
    prompt_ids: tuple[int, ...]
    spans: list[tuple[TokenSource, tuple[int, ...], int | None]] = field(default_factory=list)
    logprobs: list[float] | None = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    exact: bool = True
    was_cut: bool = False

    @property
    def ids(self) -> tuple[int, ...]:
        """All so far, the prompt's included."""
        return tuple(token for _, ids, _ in self.spans for token in ids)

    def add(
        self, source: TokenSource, ids: Sequence[int], step: int | None, logprobs: Sequence[float] | None = None
    ) -> None:
        self.spans.append((source, tuple(ids), step))
        if self.logprobs is not None:
            self.logprobs = None if logprobs is None else [*self.logprobs, *logprobs]


class TrajectoryMasker:
    """Tells which tokens of a trajectory the model sampled.

    Trajectories whose generations carry token ids (`Generation.prompt_token_ids` and `completion_token_ids`) give
    exactly the ids that the engine read and sampled; nothing is tokenised. For the others the ids are made from
    the chat template, and a `MasksFromText` warning says where tokenising the whole would give other ids than its
    parts.

    Args:
        tokenizer: a ``transformers.PreTrainedTokenizerBase`` of the model.
        renderer: of PyPI `renderers`, which bridges turns where the next prompt's ids are not known; "auto" for
            the one of the model's family (by the tokenizer's ``name_or_path``, with thoughts kept), where that is
            installed and knows it; else, and with None, the difference of two renderings by the chat template.
        on_prefix_break: when a turn's prompt does not begin with all before it: "error" (`PrefixBreak`), "split"
            (several sequences, see `mask_sequences`), "retokenize" (one sequence, made from the text of the whole
            chat, with a warning).
        prompt: the builder of the prompts of the run, for trajectories without ids whose prompts had more than the
            environment's text. A `Rollout` knows its prompts.
        parser: the form of tool calls, for templates that know none.
        template_options: variables of the chat template, e.g. ``{"enable_thinking": False}``.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        renderer: Any = AUTO,
        on_prefix_break: OnPrefixBreak = "error",
        prompt: PromptBuilder | None = None,
        parser: ToolCallParser | None = None,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        if on_prefix_break not in get_args(OnPrefixBreak):
            raise InvalidOption(
                "on_prefix_break", on_prefix_break, "is no policy", valid=", ".join(get_args(OnPrefixBreak))
            )
        if not hasattr(tokenizer, "apply_chat_template"):
            raise InvalidOption("tokenizer", tokenizer, "is no tokenizer of transformers")
        self.on_prefix_break = on_prefix_break
        self._builder = prompt
        self._ids = ChatIds(tokenizer, renderer=renderer, parser=parser, template_options=template_options)
        self._text = self._ids.tokenizer

    def mask_trajectory(
        self, trajectory: Trajectory | Rollout, *, max_response_length: int | None = None
    ) -> MaskedTrajectory:
        """The trajectory as one sequence.

        Args:
            trajectory: its generations may carry token ids.
            max_response_length: tokens of the response that are kept; ids, mask, logprobs and spans are cut
                together.

        Raises:
            PrefixBreak: it is not one sequence, and `on_prefix_break` is not "retokenize", or the chat template
                writes tool results into answers.
            InvalidOption: it holds no action.
        """
        sequences = self.mask_sequences(trajectory, max_response_length=max_response_length)
        if len(sequences) > 1:
            raise PrefixBreak(sequences[1].steps[0], 0, f"it is {len(sequences)} sequences")
        return sequences[0]

    def mask_sequences(
        self, trajectory: Trajectory | Rollout, *, max_response_length: int | None = None
    ) -> list[MaskedTrajectory]:
        """The trajectory as sequences: one, or with ``on_prefix_break="split"`` one per part.

        Each begins with all that the model read before the part; the masks of all cover each sampled token once.

        Args:
            trajectory: see `mask_trajectory`.
            max_response_length: of each sequence, >= 1.

        Raises:
            PrefixBreak: it is not one sequence, and `on_prefix_break` is "error".
            InvalidOption: it holds no action.
        """
        if max_response_length is not None:
            max_response_length = whole("max_response_length", max_response_length, at_least=1)
        turns, total = self._turns(trajectory)
        try:
            built = self._build(turns)
        except PrefixBreak as broken:
            if self.on_prefix_break != "retokenize":
                raise
            warnings.warn(
                MasksFromText(f"{broken}; the ids are made from the text of the whole chat"), stacklevel=2
            )
            built = [self._from_whole_text(turns)]
        return [self._finished(sequence, total, max_response_length) for sequence in built]

    # -- the turns ----------------------------------------------------------------------------------------

    def _turns(self, given: Trajectory | Rollout) -> tuple[list[Turn], float]:
        trajectory = given.trajectory if isinstance(given, Rollout) else given
        if trajectory is not None and not isinstance(trajectory, Trajectory):
            raise InvalidOption("trajectory", given, "must be a Trajectory or a Rollout")
        if trajectory is None or not len(trajectory):
            raise InvalidOption("trajectory", given, "holds no action, so there is nothing to mask")
        if is_segmented(trajectory.initial_state):
            raise InvalidOption(
                "trajectory", given, "is one of segments", valid="whole responses: env.base_trajectory(trajectory)"
            )
        requests = given.requests if isinstance(given, Rollout) else ()
        conversation = Conversation(self._builder)
        conversation.observe(trajectory.initial_state.observation)
        turns = []
        for step, transition in enumerate(trajectory):
            messages = requests[step] if step < len(requests) else conversation.messages()
            tools = conversation.tools
            conversation.act(transition.action, transition.generation)
            answer = conversation.chat[-1]
            generation = transition.generation or Generation(transition.action.text, transition.action.tool_calls)
            turns.append(Turn(step, messages, tools, answer, generation, transition.rewards.total))
            conversation.observe(transition.next_state.observation)
        return turns, trajectory.total_reward

    # -- sequences ----------------------------------------------------------------------------------------

    def _build(self, turns: Sequence[Turn]) -> list[_Sequence]:
        sequences: list[_Sequence] = []
        before: Turn | None = None
        for turn in turns:
            prompt = turn.generation.prompt_token_ids
            if before is None:
                sequences.append(self._begun(turn, prompt or self._ids.prompt(turn)))
            else:
                current = sequences[-1]
                have = current.ids
                if prompt is None:
                    current.exact = False
                read = prompt or self._ids.next_prompt(have, len(current.prompt_ids), before, turn)
                index = first_difference(have, read)
                if index is None:
                    self._add_context(current, read[len(have) :], before, turn)
                elif self.on_prefix_break == "split":
                    sequences.append(self._begun(turn, read))
                else:
                    raise PrefixBreak(turn.step, index)
            self._add_answer(sequences[-1], turn)
            before = turn
        for sequence in sequences:
            self._check_whole(sequence)
        return sequences

    def _begun(self, turn: Turn, prompt_ids: tuple[int, ...]) -> _Sequence:
        sequence = _Sequence(turn.step, prompt_ids, exact=turn.generation.prompt_token_ids is not None)
        for source, ids, _ in labelled(
            self._text, prompt_ids, _contents(turn.messages, first_turn=turn.step == 0)
        ):
            sequence.add(source, ids, None, [0.0] * len(ids))
        return sequence

    def _add_context(self, sequence: _Sequence, ids: Sequence[int], before: Turn, turn: Turn) -> None:
        new = turn.messages[len(before.messages) + 1 :]
        for source, span, _ in labelled(self._text, ids, _contents(new, first_turn=False)):
            sequence.add(source, span, before.step, [0.0] * len(span))

    def _add_answer(self, sequence: _Sequence, turn: Turn) -> None:
        ids = turn.generation.completion_token_ids
        logprobs = None
        if ids is None:
            ids = self._ids.answer(turn)
            sequence.exact = False
        elif turn.generation.logprobs is not None and len(turn.generation.logprobs) == len(ids):
            logprobs = [each.logprob for each in turn.generation.logprobs]
        sequence.add("model", ids, turn.step, logprobs)
        sequence.rewards.append(turn.reward)
        sequence.was_cut = turn.was_cut

    def _check_whole(self, sequence: _Sequence) -> None:
        """Warn where ids made from parts of a text differ from those of the whole."""
        if sequence.exact:
            return
        ids = sequence.ids
        again = tuple(self._text.encode(self._text.decode((), ids, special=True), special=True))
        if again != ids:
            differs = first_difference(ids, again)
            index = len(ids) if differs is None else differs
            last = sequence.first_step + len(sequence.rewards) - 1
            warnings.warn(
                MasksFromText(
                    f"the ids of steps {sequence.first_step} to {last} are made from text; tokenising the whole "
                    f"gives other ids from token {index} on. Use a backend that gives token ids (vllm, "
                    "transformers, llamacpp) to train on what was sampled"
                ),
                stacklevel=4,
            )

    def _from_whole_text(self, turns: Sequence[Turn]) -> _Sequence:
        """One sequence, from the rendering of the whole chat.

        What the template kept of each answer is the model's, and the end-of-turn token behind it.
        """
        last = turns[-1]
        chat = [*last.messages, last.answer]
        ids = self._ids.whole(last)
        text, ends = token_ends(self._text, ids)
        if not self._ids.whole_text(last).startswith(text):
            raise InvalidOption("tokenizer", self._text.tokenizer, "does not give back the text of its ids")
        # answers of the prompt's examples are not the model's; an environment may have taken some out of its chat
        answers = [number for number, message in enumerate(chat) if message.role == "assistant"][-len(turns) :]
        places = self._ids.places_of_answers(last, answers)
        contents = _contents(chat, first_turn=True)
        sequence = _Sequence(0, (), exact=False, logprobs=None)
        before, done, told = None, 0, 0
        for step, number, place in zip(range(len(turns))[-len(answers) :], answers, places, strict=True):
            first, after = token_range(ends, *place)
            if after < len(ids) and ids[after] in self._ids.ends and not turns[step].was_cut:
                after += 1
            for source, span, _ in labelled(self._text, ids[done:first], contents[told:number]):
                sequence.add(source, span, before)
            if before is None:
                sequence.prompt_ids = ids[:first]
            sequence.add("model", ids[first:after], step)
            before, done, told = step, after, number + 1
        sequence.add("template", ids[done:], before)  # the end of a turn that was cut
        sequence.rewards = [turn.reward for turn in turns]
        sequence.was_cut = last.was_cut
        return sequence

    # -- finishing ----------------------------------------------------------------------------------------

    def _finished(self, sequence: _Sequence, total: float, limit: int | None) -> MaskedTrajectory:
        prompt = len(sequence.prompt_ids)
        ids = sequence.ids
        end = len(ids) if limit is None else min(len(ids), prompt + limit)
        spans: list[TokenSpan] = []
        mask: list[int] = []
        start = 0
        for source, span_ids, step in sequence.spans:
            kept = span_ids[: max(0, end - start)]
            if kept:
                text = self._text.decode(ids[:start], kept, special=True)
                spans.append(TokenSpan(source, start, kept, text, step))
                mask += [int(source == "model")] * len(kept)
            start += len(span_ids)
        logprobs = None if sequence.logprobs is None else tuple(sequence.logprobs[prompt:end])
        masked = MaskedTrajectory(
            prompt_ids=ids[:prompt],
            response_ids=ids[prompt:end],
            response_mask=tuple(mask[prompt:]),
            logprobs=logprobs,
            spans=tuple(spans),
            rewards=tuple(sequence.rewards),
            reward=total,
            exact=sequence.exact,
            truncated=sequence.was_cut or end < len(ids),
            steps=(sequence.first_step, sequence.first_step + len(sequence.rewards)),
        )
        assert len(masked.response_ids) == len(masked.response_mask)  # trainers pad what is short, without a word
        assert logprobs is None or len(logprobs) == len(masked.response_ids)
        return masked


def _contents(messages: Sequence[ChatMessage], *, first_turn: bool) -> list[tuple[str, TokenSource]]:
    """The texts of messages that the model did not write, and whose they are."""
    contents: list[tuple[str, TokenSource]] = []
    for message in messages:
        if message.role == "assistant":
            first_turn = False
        contents.append((message.content, _source(message, first_turn)))
    return contents


def _source(message: ChatMessage, first_turn: bool) -> TokenSource:
    if message.role == "tool":
        return "tool"
    return "environment" if message.role == "user" and not first_turn else "user"
