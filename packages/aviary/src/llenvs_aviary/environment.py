"""The environments: aviary's, steppable from any state."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Advance, EnvironmentSpec
from llenvs.core.extraction import Extractor, make_extractor
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden
from llenvs.core.state import State
from llenvs.core.tool_use import ToolUse, monitored
from llenvs.core.tools import ToolDefinition
from llenvs_aviary.options import AviaryOptions, QuestionOptions
from llenvs_aviary.simulator import AviarySimulator
from llenvs_aviary.tasks import TaskSource


class AviaryEnvironment(SimulatorEnvironment):
    """Tool-calling tasks of the upstream.

    Signals:
        reward: the upstream's own of the step; STEP, or OUTCOME with the last one.
        correct, exact_match, submitted: with the last step of a question, 1.0 or 0.0, without weight; `correct`
            decides success.
        tool_errors: how many calls of the step failed (bad arguments, no such tool, an exception); without weight.
        tool_validity, tool_efficiency: see `llenvs.core.tool_use`; without weight unless asked for.

    Observations hold one tool result for each call of the last action, in the order of the calls and with their
    ids, then what else the environment said as prompt. An environment whose chat cannot be made from these (it
    begins with a system message, say) dictates the chat in ``observation.messages``.
    """

    def __init__(self, name: str, description: str, source: TaskSource, options: AviaryOptions) -> None:
        spec = EnvironmentSpec(
            name,
            "aviary",
            max_steps=options.max_steps,
            is_multi_turn=True,
            deterministic=source.deterministic,
            supports_tools=True,
            supports_images=source.supports_images,
            success_signal=source.success_signal,
            success_threshold=source.success_threshold,
            description=description,
            metadata=source.metadata,
        )
        extractor = _extractor(options)
        super().__init__(
            spec,
            lambda: AviarySimulator(spec.id, source, options, extractor),
            num_tasks=len(source),
            snapshots=source.snapshots,
            limits=options.limits,
            reward_functions=monitored(make_reward_functions(options.extra_rewards)),
        )
        self._tools: dict[str, ToolDefinition] = {}
        self._tools_lock = threading.Lock()

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """Tools of all tasks begun so far; of the first one, if there is none yet."""
        if not self._tools:
            self.reset(seed=0, options={"task_index": 0})
        with self._tools_lock:
            return tuple(self._tools.values())

    def ground_truth(self, state: State[SimulatorHidden]) -> str | None:
        """The right answer of the question; None where the upstream does not tell one."""
        answer = state.hidden["truth"].get("answer")
        return None if answer is None else f"{answer:g}" if isinstance(answer, float) else str(answer)

    def _start(self, task_index: int, seed: int, options: Any) -> Any:
        start = super()._start(task_index, seed, options)
        with self._tools_lock:
            for tool in start.observation.available_tools:
                self._tools.setdefault(tool.name, tool)
        return start

    def _advance(self, state: State[SimulatorHidden], action: Action) -> Advance:
        advance = super()._advance(state, action)
        understood = advance.resolved_action or action
        use = ToolUse.of(state).after(understood.tool_calls, advance.observation.tool_results)
        return replace(advance, info={**advance.info, **use.info})

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        yield from next_state.hidden["signals"]
        failed = [result for result in next_state.observation.tool_results if not result.ok]
        words = f"{len(failed)} of the tool calls failed." if failed else None
        yield Signal("tool_errors", RewardType.PROCESS, len(failed), words, 0.0)
        if next_state.is_terminal:
            for name, value in next_state.hidden["truth"]["outcome"].items():
                yield Signal(name, RewardType.OUTCOME, value, None, 0.0)


def _extractor(options: AviaryOptions) -> Extractor | None:
    if not isinstance(options, QuestionOptions) or options.answer_extractor is None:
        return None
    return make_extractor(options.answer_extractor)
