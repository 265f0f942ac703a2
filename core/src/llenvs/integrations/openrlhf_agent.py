"""Episodes in OpenRLHF's own agent classes. Importing this imports OpenRLHF and torch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from openrlhf.utils.agent import AgentExecutorBase, AgentInstanceBase, MultiTurnAgentExecutor

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation
from llenvs.inference.tool_calls import ToolCallParser, make_parser
from llenvs.inference.tool_calls.reading import with_tool_calls
from llenvs.integrations.chat_ids import ChatIds, PrefixBreak, first_difference
from llenvs.integrations.checks import finite, names, whole
from llenvs.integrations.control_text import broken_up, control_texts, without_end
from llenvs.integrations.environment_user import check_whole_turns
from llenvs.integrations.episode import Episode
from llenvs.integrations.openrlhf import row_of
from llenvs.integrations.row_scoring import NotScored
from llenvs.integrations.scorer_pool import ScorerPool

_log = logging.getLogger("llenvs.integrations")


class EpisodeAgent(AgentInstanceBase):  # type: ignore[misc, unused-ignore]
    """One episode, as OpenRLHF drives it: text in, rewards and text out.

    Args:
        settings: shared by all episodes of an executor.
        chat: renders what stands between two turns.
    """

    def __init__(self, settings: Settings, chat: ChatIds) -> None:
        self._settings = settings
        self._chat = chat
        self._ends = settings.ends(chat.tokenizer.tokenizer)
        self._episode: Episode | None = None
        self._given = 0.0

    async def reset(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Begin the episode that the label names; the observation is the prompt as it is.

        Raises:
            TaskMismatch, InvalidOption: the label is of no task, or of another version of it.
        """
        self._episode = Episode(self._settings.pool, row_of(states["label"]), retries=self._settings.retries)
        await self._episode.abegin()
        return {"observation": states["observation"]}

    async def step(self, state_dict: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Take what the model said.

        Returns:
            ``rewards``: what the episode earned by this step, a tensor without dimensions; ``scores``: by all;
            ``environment_feedback``: the raw text up to the next answer, "" at the end; ``done``; ``extra_logs``.

        Raises:
            NotScored: the environment failed, and ``on_error`` is "raise".
        """
        episode, settings = self._episode, self._settings
        if episode is None:
            raise InvalidOption("reset", None, "must be called before step")
        said = str(state_dict["action_text"])
        text = without_end(said, self._ends)
        generation = Generation(text)
        if episode.tools:
            generation = with_tool_calls(generation, self._chat.tokenizer.parser, written=text)
        await episode.aact(episode.action_of(generation), generation)
        ended = text != said
        done = episode.done or not ended or episode.turns == settings.max_turns
        feedback = "" if done else self._feedback(episode)
        if feedback and not self._has_room(state_dict, said, feedback):
            done, feedback = True, ""  # what the model cannot answer is not trained on
        result = episode.result()
        if result.error is not None and settings.on_error == "raise":
            # logged already, with its task
            raise NotScored(f"{episode.scorer.env.spec.id}: task {episode.task_index}: {result.error}")
        total = float(settings.on_error) if result.reward is None else result.reward
        earned, self._given = total - self._given, total
        return {
            "rewards": torch.tensor(earned),
            "scores": torch.tensor(total),
            "environment_feedback": feedback,
            "done": done,
            "extra_logs": {
                "llenvs_correct": float(bool(result.correct)),
                "llenvs_error": float(result.error is not None),
                "llenvs_turns": float(episode.turns),
            },
        }

    def _feedback(self, episode: Episode) -> str:
        """What stands between this answer and the next, as text: after the sampled end of turn."""
        chat = self._chat.tokenizer
        # as raw text, that of a control token would end the turn
        controls = (*control_texts(chat.tokenizer), *self._ends)
        new = [
            replace(message, content=broken_up(message.content, controls)) for message in episode.new_messages()
        ]
        before = [*episode.messages_before(), episode.answer]
        told = chat.render_chat(before, episode.tools, generation_prompt=False).text
        read = chat.render_chat([*before, *new], episode.tools).text
        index = first_difference(told, read)
        if index is not None:
            raise PrefixBreak(episode.turns, index, "characters of the chat template's output")
        ends = [told.rfind(end) + len(end) for end in self._ends if end in told]
        return told[max(ends, default=len(told)) :] + read[len(told) :]

    def _has_room(self, state_dict: Mapping[str, Any], said: str, feedback: str) -> bool:
        """Whether an answer would fit behind `feedback`: OpenRLHF appends it even where none does."""
        budget: int | None = getattr(state_dict.get("sampling_params"), "max_tokens", None)
        if budget is None:
            return True
        encode = self._chat.tokenizer.encode
        return len(encode(said, special=True)) + len(encode(feedback, special=True)) < budget


@dataclass(frozen=True)
class Settings:
    """What all episodes of an executor share; see `make_openrlhf_agent_executor`."""

    pool: ScorerPool
    tokenizer: Any
    max_turns: int | None
    retries: int
    on_error: float | str
    end_of_turn: tuple[str, ...]
    parser: ToolCallParser

    def ends(self, tokenizer: Any) -> tuple[str, ...]:
        """Texts that end an answer."""
        eos = tokenizer.eos_token
        return self.end_of_turn if eos is None or eos in self.end_of_turn else (*self.end_of_turn, eos)

    def chat_of(self, handed: Any) -> ChatIds:
        """Renders by the tokenizer that was given, or by the one that OpenRLHF handed over."""
        tokenizer = handed if self.tokenizer is None else self.tokenizer
        if isinstance(tokenizer, str):
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        return ChatIds(tokenizer, parser=self.parser)


def executor_class(
    env: Environment[Any] | str | None,
    *,
    tokenizer: Any,
    max_turns: int | None,
    retries: int,
    timeout: float | None,
    on_error: float | str,
    end_of_turn: Sequence[str],
    parser: Any,
    options: Mapping[str, Any] | None,
) -> type[AgentExecutorBase]:
    """See `llenvs.integrations.openrlhf.make_openrlhf_agent_executor`."""
    if on_error != "raise":
        finite("on_error", on_error, '"raise"')
    pool = ScorerPool(env, options, max_concurrency=64, timeout=timeout)
    check_whole_turns(pool.environment)
    settings = Settings(
        pool,
        tokenizer,
        None if max_turns is None else whole("max_turns", max_turns, at_least=1),
        whole("retries", retries, at_least=0),
        on_error,
        names("end_of_turn", end_of_turn),
        make_parser(parser),
    )

    class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc, unused-ignore]
        """Plays episodes of LLEnvs."""

        def __init__(self) -> None:
            super().__init__(EpisodeAgent)
            self._chat: ChatIds | None = None

        async def execute(
            self,
            prompt: Any,
            label: Any,
            sampling_params: Any,
            max_length: int,
            hf_tokenizer: Any,
            llm_engine: Any,
            images: Any = None,
        ) -> Any:
            """One episode; logs what ends it, since the trainer may not say."""
            if self._chat is None:
                self._chat = settings.chat_of(hf_tokenizer)
                chat = self._chat

                class BoundAgent(EpisodeAgent):
                    """An episode of this executor."""

                    def __init__(self) -> None:
                        super().__init__(settings, chat)

                self.agent_instance_cls = BoundAgent
            try:
                return await super().execute(
                    prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images
                )
            except NotScored:
                raise  # logged already
            except Exception as error:
                _log.error("AgentExecutor: %s: %s", type(error).__name__, error)
                raise

    return AgentExecutor
