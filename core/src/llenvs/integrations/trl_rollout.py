"""Whole episodes as TRL's `rollout_func`: the environment is heard after every turn, with tools or without."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.core.generation import Generation
from llenvs.core.loop import run_sync
from llenvs.core.message import ChatMessage
from llenvs.inference.tool_calls import ToolCallParser
from llenvs.integrations.chat_ids import ChatIds, Turn
from llenvs.integrations.checks import whole
from llenvs.integrations.environment_user import check_whole_turns
from llenvs.integrations.episode import Episode, generation_of, message_of, signal_metrics
from llenvs.integrations.family_renderer import AUTO
from llenvs.integrations.scorer_pool import IDENTITY, ScorerPool

REWARD = "llenvs_reward"
"""The key of a rollout's output, and the argument of reward functions, that holds the reward of each episode."""
METRICS = "llenvs_metrics"
"""The same for the numbers to log of each episode."""


class RolloutInvalid(LLEnvsError):
    """What a trainer generated cannot be trained on; TRL itself would not notice."""


@dataclass
class _Running:
    """An episode and its tokens."""

    episode: Episode
    messages: tuple[ChatMessage, ...]
    prompt_ids: tuple[int, ...]
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float | None] | None = None
    over: bool = False

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.prompt_ids, *self.completion_ids)

    def add(self, ids: Sequence[int], bit: int, logprobs: Sequence[float | None] | None) -> None:
        self.completion_ids += ids
        self.mask += [bit] * len(ids)
        if logprobs is not None:
            self.logprobs = [*(self.logprobs or []), *logprobs]


class EpisodeReward:
    """The reward function that belongs to a `TRLRollout`: gives back what the episodes earned."""

    def __init__(self, name: str) -> None:
        # the trainer logs the reward under this name
        self.__name__ = name

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        *,
        log_metric: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward per completion; None where the environment failed.

        Raises:
            InvalidOption: the completions are not those of a `TRLRollout`.
        """
        rewards = columns.get(REWARD)
        if rewards is None or len(rewards) != len(completions):
            raise InvalidOption(
                REWARD,
                None if rewards is None else len(rewards),
                "is needed for each completion",
                valid="GRPOTrainer(rollout_func=rollout, reward_funcs=rollout.reward) with one rollout of "
                "make_trl_rollout_fn",
            )
        if log_metric is not None:
            values: dict[str, list[float]] = {}
            for metrics in columns.get(METRICS) or ():
                for name, value in metrics.items():
                    values.setdefault(name, []).append(value)
            for name, each in values.items():
                log_metric(name, sum(each) / len(each))
        return list(rewards)


class TRLRollout:
    """A `rollout_func` of `GRPOTrainer`; see `make_trl_rollout_fn`.

    Attributes:
        reward: the reward function that goes with it.
    """

    def __init__(
        self,
        env: Environment[Any] | str | None,
        *,
        max_turns: int | None = None,
        max_concurrency: int = 8,
        retries: int = 1,
        timeout: float | None = None,
        renderer: Any = AUTO,
        parser: ToolCallParser | None = None,
        chat_template: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._max_turns = None if max_turns is None else whole("max_turns", max_turns, at_least=1)
        self._retries = whole("retries", retries, at_least=0)
        self._pool = ScorerPool(env, options, max_concurrency=max_concurrency, timeout=timeout)
        check_whole_turns(self._pool.environment)
        self._renderer = renderer
        self._parser = parser
        self._chat_template = chat_template
        self._limit = max_concurrency
        self._chat: tuple[Any, ChatIds] | None = None
        self.reward = EpisodeReward(self._pool.name)

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """One episode for each prompt (which TRL gives as often as it wants generations of it).

        Raises:
            InvalidOption: the prompts do not say which task they are.
            TaskMismatch: a prompt is of another version of its task.
            PrefixBreak: the chat template or the environment does not keep what was said.
            RolloutInvalid: the trainer generated something that cannot be trained on.
        """
        chat = self._chat_of(trainer)
        limits = _Limits.of(trainer)
        episodes = [Episode(self._pool, _row(prompt), retries=self._retries) for prompt in prompts]
        run_sync(self._all(episode.abegin() for episode in episodes))
        running = []
        for prompt, episode in zip(prompts, episodes, strict=True):
            messages = tuple(message_of(message) for message in prompt)
            turn = Turn(0, messages, episode.tools, ChatMessage("assistant", ""), Generation(""), 0.0)
            running.append(_Running(episode, messages, chat.prompt(turn)))
        while True:
            waiting = [each for each in running if not each.over]
            if not _any_of_all_processes(trainer, bool(waiting)):
                break
            # a process that has finished generates along: engines that all share are called equally often
            asked = waiting or running[:1]
            answers = _generate(trainer, [each.ids for each in asked])
            if waiting:
                run_sync(
                    self._all(
                        self._turn(chat, limits, each, *answer)
                        for each, answer in zip(waiting, answers, strict=True)
                    )
                )
        return _checked(running, len(prompts), limits)

    async def _turn(
        self,
        chat: ChatIds,
        limits: _Limits,
        running: _Running,
        ids: list[int],
        logprobs: list[float | None] | None,
    ) -> None:
        """Add an answer, let the environment react, and add what the model reads next."""
        episode = running.episode
        room = limits.completion - len(running.completion_ids)
        ids, logprobs = ids[:room], None if logprobs is None else logprobs[:room]
        if not ids:
            raise RolloutInvalid(
                f"{episode.scorer.env.spec.id}: the trainer generated no token for turn {episode.turns} of task "
                f"{episode.task_index}; is the prompt ({len(running.ids)} tokens) longer than the model reads?"
            )
        ended = ids[-1] in chat.ends or ids[-1] in limits.ends
        generation = generation_of(chat, running.ids, ids, ended, with_tools=bool(episode.tools))
        running.add(ids, 1, logprobs)
        action = episode.action_of(generation)
        await episode.aact(action, generation)
        if episode.done or not ended or episode.turns == self._max_turns:
            running.over = True
            return
        before = Turn(episode.turns - 1, running.messages, episode.tools, episode.answer, generation, 0.0)
        running.messages = (*running.messages, episode.answer, *episode.new_messages())
        after = Turn(episode.turns, running.messages, episode.tools, episode.answer, generation, 0.0)
        have = running.ids
        read = chat.next_prompt(have, len(running.prompt_ids), before, after)
        bridge = read[len(have) :]
        if len(running.completion_ids) + len(bridge) >= limits.completion or len(read) >= limits.model:
            running.over = True  # no room for an answer: what the model cannot answer is not trained on
            return
        running.add(bridge, 0, None if logprobs is None else [0.0] * len(bridge))

    async def _all(self, works: Any) -> None:
        gate = asyncio.Semaphore(self._limit)

        async def one(work: Any) -> None:
            async with gate:
                await work

        tasks = [asyncio.ensure_future(one(work)) for work in works]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _chat_of(self, trainer: Any) -> ChatIds:
        if self._chat is None or self._chat[0] is not trainer:
            processing = trainer.processing_class
            tokenizer = getattr(processing, "tokenizer", processing)
            template = self._chat_template or getattr(trainer, "chat_template", None)
            if template is not None:
                tokenizer = copy.copy(tokenizer)
                tokenizer.chat_template = template
            options = getattr(trainer, "chat_template_kwargs", None) or {}
            made = ChatIds(tokenizer, renderer=self._renderer, parser=self._parser, template_options=dict(options))
            self._chat = (trainer, made)
        return self._chat[1]


def make_trl_rollout_fn(
    env: Environment[Any] | str | None,
    *,
    max_turns: int | None = None,
    max_concurrency: int = 8,
    retries: int = 1,
    timeout: float | None = None,
    renderer: Any = AUTO,
    parser: ToolCallParser | None = None,
    chat_template: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> TRLRollout:
    """A `rollout_func` for `GRPOTrainer`: whole episodes of any environment, by the trainer's own engine.

    ```python
    rollout = make_trl_rollout_fn(env, max_turns=8)
    GRPOTrainer(model, reward_funcs=rollout.reward, rollout_func=rollout,
                train_dataset=make_trl_dataset(env, identity_in_prompt=True), args=GRPOConfig(...))
    ```

    Sampled ids stay as they are; what the environment says is rendered by the chat template and appended.
    ``env_mask`` is 1 for sampled tokens alone. All episodes of a batch take their turns together.

    An episode ends with the environment, after `max_turns`, with an answer that has no end-of-turn token (the
    environment hears it still), and where ``max_completion_length`` or the model's length leave no room for a
    further answer; its reward is the sum of the steps taken, None when the environment failed.

    TRL does not look at what a rollout gives, so everything is checked here. Prompts must hold their identity: TRL
    hands no other column to a `rollout_func`. Not together with the trainer's ``tools``.

    Args:
        env: the environment, or its address; None when all prompts have an identity.
        max_turns: actions of one episode; None for the environment's own limit.
        max_concurrency: resets and steps at once.
        retries: see `llenvs.integrations.episode.Episode`.
        timeout: seconds for one reset or step, then it is a failure; None for no limit. What hangs in this process
            goes on in its thread: to have it ended, isolate the environment (``container="process"``).
        renderer: of PyPI `renderers`, or "auto", for bridges between turns; see `TrajectoryMasker`.
        parser: the form of tool calls; None for `HermesToolCallParser`.
        chat_template: Jinja text that replaces the model's own, for models whose template drops what was said
            earlier, e.g. ``trl.chat_template_utils.get_training_chat_template(tokenizer)``.
        options: of the environment, when `env` is an address.
    """
    return TRLRollout(
        env,
        max_turns=max_turns,
        max_concurrency=max_concurrency,
        retries=retries,
        timeout=timeout,
        renderer=renderer,
        parser=parser,
        chat_template=chat_template,
        options=options,
    )


@dataclass(frozen=True)
class _Limits:
    """What the trainer allows: tokens of a completion, tokens that the model reads, ids that end a turn."""

    completion: int
    model: int
    ends: frozenset[int]

    @classmethod
    def of(cls, trainer: Any) -> _Limits:
        if getattr(trainer, "tools", None):
            raise InvalidOption("tools", len(trainer.tools), "of the trainer do not go with a rollout_func")
        config = trainer.model.config
        config = getattr(config, "text_config", config)
        longest = getattr(config, "max_position_embeddings", None) or 2**62
        ends = frozenset(getattr(trainer, "eos_token_ids", ()) or ())
        return cls(int(trainer.max_completion_length), int(longest), ends)


def _row(prompt: Any) -> Mapping[str, Any]:
    """The identity that a prompt carries."""
    if not isinstance(prompt, str):
        for message in prompt:
            if message.get(IDENTITY):
                return {IDENTITY: message[IDENTITY]}
    raise InvalidOption(
        "prompt",
        prompt if isinstance(prompt, str) else list(prompt),
        "does not say which task it is, and TRL hands no other column to a rollout_func",
        valid="rows of make_trl_dataset(env, identity_in_prompt=True)",
    )


def _generate(trainer: Any, prompts: Sequence[Sequence[int]]) -> list[tuple[list[int], list[float | None] | None]]:
    """One completion of each prompt, by whatever engine the trainer uses, with its weights of now."""
    generate = getattr(trainer, "_generate_single_turn", None)
    if generate is None:
        raise InvalidOption("trainer", trainer, "cannot generate from token ids", valid="GRPOTrainer of TRL 1.16")
    completions, logprobs = generate([list(ids) for ids in prompts], None, {}, 1)
    if len(completions) != len(prompts):
        raise RolloutInvalid(f"the trainer gave {len(completions)} completions of {len(prompts)} prompts")
    answers = []
    for number, ids in enumerate(completions):
        each = None if logprobs is None else list(logprobs[number])
        if each is not None and len(each) != len(ids):
            raise RolloutInvalid(f"the trainer gave {len(each)} logprobs of {len(ids)} tokens")
        answers.append(([int(token) for token in ids], each))
    return answers


def _any_of_all_processes(trainer: Any, here: bool) -> bool:
    accelerator = trainer.accelerator
    if accelerator.num_processes == 1:
        return here
    import torch

    flag = torch.tensor([int(here)], device=accelerator.device)
    return bool(accelerator.gather(flag).sum().item())


def _checked(running: Sequence[_Running], count: int, limits: _Limits) -> dict[str, Any]:
    """The output, after all that TRL would take without a word: wrong counts, short masks, empty completions."""
    results = [each.episode.result() for each in running]
    with_logprobs = sum(each.logprobs is not None for each in running)
    for each in running:
        length = len(each.completion_ids)
        sampled = sum(each.mask)
        if not (
            len(each.mask) == length
            and 0 < length <= limits.completion
            and sampled > 0
            and each.mask[-1] == 1
            and with_logprobs in (0, count)
            and (each.logprobs is None or len(each.logprobs) == length)
        ):
            raise RolloutInvalid(
                f"task {each.episode.task_index}: {length} tokens of at most {limits.completion}, "
                f"{len(each.mask)} bits of the mask, {sampled} sampled tokens, "
                f"logprobs of {with_logprobs} of {count} episodes"
            )
    if len(running) != count:
        raise RolloutInvalid(f"{len(running)} episodes of {count} prompts")
    return {
        "prompt_ids": [list(each.prompt_ids) for each in running],
        "completion_ids": [each.completion_ids for each in running],
        "logprobs": [each.logprobs for each in running] if with_logprobs else None,
        "env_mask": [each.mask for each in running],
        REWARD: [result.reward for result in results],
        METRICS: [signal_metrics(result) for result in results],
    }
