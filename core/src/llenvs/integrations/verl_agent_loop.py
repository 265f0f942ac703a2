"""An agent loop of veRL that plays episodes of an environment. Importing this imports veRL.

Rows choose it by ``agent_name: llenvs`` once every worker knows it, by one of

```text
VERL_USE_EXTERNAL_MODULES=llenvs.integrations.verl_agent_loop
```

in the environment of all processes, or ``actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml`` with

```yaml
- name: llenvs
  _target_: llenvs.integrations.verl.LLEnvsAgentLoop
  max_turns: 8
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.profiler import simple_timer

from llenvs.core.errors import InvalidOption
from llenvs.core.message import ChatMessage
from llenvs.inference.local.chat_template import template_message
from llenvs.inference.tool_calls import ToolCallParser, make_parser
from llenvs.integrations.chat_ids import ChatIds
from llenvs.integrations.checks import names, whole
from llenvs.integrations.control_text import broken_up, control_texts
from llenvs.integrations.episode import Episode, generation_of, message_of
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.verl import AGENT_NAME, extra_numbers


@dataclass
class _Tokens:
    """Prompt and response so far: the first `start` ids are the prompt's, mask and logprobs the response's."""

    ids: list[int]
    start: int
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None


@register(AGENT_NAME)
class LLEnvsAgentLoop(AgentLoopBase):  # type: ignore[misc, unused-ignore]
    """Plays one episode of the task of a row: real ids, masks by veRL's own token builder, one reward.

    The reward is the sum of all steps. Observations are appended; sampled tokens stay as they are. Texts of
    control tokens in a prompt or an observation are broken up (``< |im_end|>``), since veRL would read them as
    such. An episode ends with the environment, after `max_turns`, with an answer that was cut, or where
    ``response_length`` leaves no room for a further answer.

    A failed environment is tried again; then its response has a mask of zeros, the score 0 and ``llenvs_error``
    1.0, since veRL knows no missing score. (Its group's mean still counts the 0.)

    Args:
        args: veRL's.
        env: an address, for rows without an identity.
        options: of `env`.
        max_turns: actions of one episode; None for the environment's own limit.
        observation_role: of the messages in which the environment speaks: "user" or "tool".
        retries: see `llenvs.integrations.episode.Episode`.
        timeout: seconds for one reset or step, then it is a failure; null for no limit. What hangs in this process
            goes on in its thread: to have it ended, isolate the environment (``container="process"``).
        signals: names of signals to log as ``llenvs/<name>``.
        parser: the form of tool calls, by its name.
        kwargs: veRL's.
    """

    def __init__(
        self,
        *args: Any,
        env: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        observation_role: str = "user",
        retries: int = 1,
        timeout: float | None = None,
        signals: Sequence[str] = (),
        parser: str = "hermes",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if observation_role not in ("user", "tool"):
            raise InvalidOption("observation_role", observation_role, "cannot be", valid="user, tool")
        self._pool = _pool(env, json.dumps(_plain(options or {}), sort_keys=True), timeout)
        self._max_turns = None if max_turns is None else whole("max_turns", max_turns, at_least=1)
        self._role = observation_role
        self._retries = whole("retries", retries, at_least=0)
        self._signals = names("signals", signals)
        self._controls = control_texts(self.tokenizer)
        self._parser: ToolCallParser = make_parser(parser)
        self._limit = int(self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """One episode.

        Args:
            sampling_params: for the engine, as they are.
            row: of the data set: ``raw_prompt``, and ``extra_info`` with ``llenvs`` or ``task_index``.

        Raises:
            TaskMismatch, InvalidOption: the row is of no task, or of another version of it.
        """
        metrics: dict[str, Any] = {}
        chat = [self._told(message_of(message)) for message in row["raw_prompt"]]
        episode = Episode(self._pool, _identity(row), retries=self._retries)
        with simple_timer("tool_calls", metrics):
            await episode.abegin()
        tools = [tool.to_openai() for tool in episode.tools] or None
        prompt = list(await self.ct_build_initial_tokens(chat, tools=tools))
        tokens = _Tokens(prompt, len(prompt))
        spelling = ChatIds(self.tokenizer, parser=self._parser)
        request = uuid4().hex
        observations = 0
        while not episode.done:
            before = list(tokens.ids)
            with simple_timer("generate_sequences", metrics):
                sampled = await self._sampled(tokens, episode, request, sampling_params)
            if not sampled:
                break
            ended = sampled[-1] in spelling.ends
            generation = generation_of(spelling, before, sampled, ended, with_tools=bool(tools))
            with simple_timer("tool_calls", metrics):
                await episode.aact(episode.action_of(generation), generation)
            if episode.done or not ended or episode.turns == self._max_turns:
                break
            answered = [*chat, template_message(episode.answer, "mapping")]
            chat = [*answered, *(self._heard(message) for message in episode.new_messages())]
            if not await self._shown(tokens, answered, chat, tools):
                break
            observations += 1
        if tokens.logprobs is None and sampling_params.get("logprobs"):
            tokens.logprobs = []  # nothing was sampled: veRL needs some from all or from none
        return self._output(episode, tokens, metrics, observations)

    async def _sampled(
        self, tokens: _Tokens, episode: Episode, request: str, sampling_params: Mapping[str, Any]
    ) -> list[int]:
        """Add an answer of the engine, as long as there is room; [] where it gives none."""
        output = await self.server_manager.generate(
            request_id=request, prompt_ids=list(tokens.ids), sampling_params=dict(sampling_params)
        )
        room = self._limit - len(tokens.mask)
        sampled = list(output.token_ids)[:room]
        given = None if not output.log_probs else list(output.log_probs)[:room]
        if not sampled:
            episode.fail(f"the engine gave no token for turn {episode.turns} ({output.stop_reason})")
            return []
        if not tokens.mask and given is not None:
            tokens.logprobs = []
        merged, tokens.mask, tokens.logprobs = await self.ct_merge_assistant_token(
            tokens.ids,
            sampled,
            tokens.mask,
            tokens.logprobs,
            assistant_logprobs=None if tokens.logprobs is None else given,
        )
        tokens.ids = list(merged.token_ids)
        return sampled

    async def _shown(
        self, tokens: _Tokens, answered: list[dict[str, Any]], chat: list[dict[str, Any]], tools: Any
    ) -> bool:
        """Add what the environment says, if there is room for an answer: what the model cannot answer is not
        trained on."""
        merged, mask, logprobs = await self.ct_merge_context_msg(
            answered, chat, tokens.ids, tokens.mask, tokens.logprobs, tools=tools
        )
        if len(mask) >= self._limit:
            return False
        tokens.ids, tokens.mask, tokens.logprobs = list(merged.token_ids), mask, logprobs
        return True

    def _output(
        self, episode: Episode, tokens: _Tokens, metrics: dict[str, Any], observations: int
    ) -> AgentLoopOutput:
        """What veRL takes, after all that it would take without a word: masks and lengths that do not fit."""
        result = episode.result()
        mask, logprobs = list(tokens.mask), tokens.logprobs
        while mask and not mask[-1]:  # veRL puts the reward on the last token: it must be the model's
            mask.pop()
        response = tokens.ids[tokens.start : tokens.start + len(mask)]
        if result.error is not None:
            mask = [0] * len(mask)
        if not response:  # the reward of an empty response would be put on padding
            response, mask = [int(self.tokenizer.eos_token_id)], [0]
        if logprobs is not None:
            logprobs = [*logprobs[: len(response)], *[0.0] * (len(response) - len(logprobs))]
        assert len(response) == len(mask) <= self._limit
        assert logprobs is None or len(logprobs) == len(response)
        reward = 0.0 if result.reward is None else result.reward
        return AgentLoopOutput(
            prompt_ids=tokens.ids[: tokens.start],
            response_ids=response,
            response_mask=mask,
            response_logprobs=logprobs,
            reward_score=reward,
            num_turns=1 + episode.turns + observations,
            metrics=metrics,
            extra_fields={
                "reward_extra_info": {"score": reward, **extra_numbers(result, self._signals)},
                "turn_scores": list(result.step_rewards),
                "tool_rewards": [],
            },
        )

    def _told(self, message: ChatMessage) -> dict[str, Any]:
        """A message that the model did not write, for veRL's token builder, which reads control tokens in it."""
        return template_message(replace(message, content=broken_up(message.content, self._controls)), "mapping")

    def _heard(self, message: ChatMessage) -> dict[str, Any]:
        """A message of the environment, in the role that was chosen for it."""
        told = self._told(message)
        return {**told, "role": self._role} if told["role"] == "user" else told


def _identity(row: Mapping[str, Any]) -> Mapping[str, Any]:
    extra_info = row.get("extra_info")
    return extra_info if isinstance(extra_info, Mapping) else {}


def _plain(value: Any) -> Any:
    """hydra's containers as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


@lru_cache(maxsize=16)
def _pool(env: str | None, options: str, timeout: float | None) -> ScorerPool:
    """One for all trajectories of a process: veRL makes a loop for each."""
    return ScorerPool(env, json.loads(options), max_concurrency=64, timeout=timeout)
