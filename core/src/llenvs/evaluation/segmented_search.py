"""Next segments proposed by a model, for search at segment boundaries."""

from __future__ import annotations

import asyncio
from typing import Any

from llenvs.core.action import Action
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import Generation, Usage
from llenvs.core.message import ChatMessage
from llenvs.core.segmentation.control import final_segment
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.segmentation.response import Response, hidden_of
from llenvs.core.state import State
from llenvs.evaluation.prompting import prompt_builder
from llenvs.evaluation.seeds import derive_seed
from llenvs.evaluation.segmented_episode import CONTINUE, continued, takes_prefix
from llenvs.evaluation.segmented_writer import Answer, MessageWriter
from llenvs.inference.backend import Backend
from llenvs.inference.loop import run_sync
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams


class SegmentProposer:
    """Proposes the next segment in any state of a segmented environment; a `Proposer` of `llenvs.core.search`.

    It works from the state alone: the chat is that of the state, with the message that is begun as the prefix (or
    in words, as in `SegmentedTrajectoryRunner`). Equal proposals are given once, with their share as the prior.

    Args:
        environment: whose states they are.
        backend: the model.
        count: samples in each state.
        sampling_params: ``max_tokens`` is for a segment (512 when it has none): a longer one ends the response.
        system_prompt: see `TrajectoryRunner`.
        prompt: see `TrajectoryRunner`.
        chunk_tokens: tokens to ask for at a time, where the backend takes an assistant prefix. What a sample
            writes beyond its first segment is thrown away.
        seed: of the samples; each state has its own.

    Raises:
        InvalidOption: naming the argument.
    """

    def __init__(
        self,
        environment: SegmentedEnvironment,
        backend: Backend,
        *,
        count: int = 3,
        sampling_params: SamplingParams | None = None,
        system_prompt: Any = None,
        prompt: Any = None,
        chunk_tokens: int = 48,
        seed: int = 0,
    ) -> None:
        if not isinstance(environment, SegmentedEnvironment):
            raise InvalidOption("environment", environment, "must be a SegmentedEnvironment")
        if not isinstance(backend, Backend):
            raise InvalidOption("backend", backend, "must be a Backend; make one with make_backend(name, ...)")
        for name, value in {"count": count, "chunk_tokens": chunk_tokens}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidOption(name, value, "must be a positive integer")
        self.environment = environment
        self.backend = backend
        self.count = count
        self.sampling = (sampling_params or SamplingParams()).with_defaults(SamplingParams(max_tokens=512))
        self.builder = prompt_builder(backend.model, system_prompt, prompt)
        self.chunk_tokens = chunk_tokens
        self.seed = seed
        self.usage = Usage()
        """Tokens and cost of all proposals so far."""

    def __call__(self, state: State[Any]) -> list[tuple[Action, float]]:
        """Different actions that go on from `state`, with the share of samples that proposed each."""
        return run_sync(self.apropose(state))

    async def apropose(self, state: State[Any]) -> list[tuple[Action, float]]:
        """`__call__` for async code."""
        samples = await asyncio.gather(*(self._sample(state, number) for number in range(self.count)))
        shares: dict[str, tuple[Action, int]] = {}
        for action in samples:
            key = repr(action)
            shares[key] = (action, shares[key][1] + 1 if key in shares else 1)
        return [(action, times / self.count) for action, times in shares.values()]

    async def _sample(self, state: State[Any], number: int) -> Action:
        response = Response.of(state)
        tools = hidden_of(state)["base"].observation.available_tools
        capabilities = self.backend.capabilities
        has_prefix = takes_prefix(self.backend, self.builder)
        part = 0

        async def ask(written: str, max_tokens: int | None) -> Answer:
            nonlocal part
            where = (state.metadata.episode_id, state.metadata.step, response.whole_text, number, part)
            seed = derive_seed(self.seed, *where) if capabilities.seed else None
            part += 1
            sampling = self.sampling.model_copy(update={"max_tokens": max_tokens, "seed": seed})
            messages, prefix = self.builder.build(response.chat), written
            if written and not has_prefix:
                messages, prefix = (*messages, ChatMessage.assistant(written), ChatMessage.user(CONTINUE)), ""
            generation: Generation = await self.backend.generate(
                GenerationRequest(messages, sampling, tools, prefix=prefix)
            )
            self.usage += generation.usage
            return continued(written, generation) if written and not prefix else Answer(generation)

        given = (self.builder.assistant_prefix or "") if response.actions == 0 else ""
        writer = MessageWriter(
            self.environment.segmenter,
            ask,
            committed=response.text,
            given=given,
            max_tokens=self.sampling.max_tokens,
            chunk_tokens=self.chunk_tokens if has_prefix else None,
        )
        piece = await writer.next()
        return final_segment(piece.text, piece.tool_calls) if piece.ends else Action(piece.text)
