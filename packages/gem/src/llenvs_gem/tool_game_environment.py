"""Games with tools: a model may call some before each move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Start
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import SimulatorHidden
from llenvs.core.state import State
from llenvs.core.tool_use import ToolUse, monitored
from llenvs.core.tools import ToolDefinition, ToolResult
from llenvs.core.tools.executor import with_ids
from llenvs_gem.catalogue import Entry
from llenvs_gem.game_environment import GemGameEnvironment
from llenvs_gem.options import GameOptions
from llenvs_gem.tools import LAST_USE, SUBMIT, BudgetedExecutor, Spent, make_executor

_NO_REWARD = (Signal("reward", RewardType.STEP, 0.0),)


class GemToolGameEnvironment(GemGameEnvironment):
    r"""One game with tools.

    A move is the text of a response without calls, or what is given to `submit_answer`, in a box or without;
    nothing is called after it. Calls of other tools take no turn of the game. When none are left, a response with
    calls is a move like any other, by its text.

    Signals: those without tools, and `tool_reward` with each step (STEP, weight 1).
    """

    def __init__(self, entry: Entry, options: GameOptions) -> None:
        super().__init__(entry, options)
        self._spec = replace(
            self._spec,
            supports_tools=True,
            deterministic=False,
            metadata={**self._spec.metadata, "tool_types": list(options.tool_types)},
        )
        self._reward_functions = monitored(self._reward_functions)
        self._budget = BudgetedExecutor(make_executor(options), options)

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """All tools, for every state."""
        return self._budget.definitions

    def close(self) -> None:
        """Close the tools too."""
        super().close()
        self._budget.close()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        hidden = _with_truth(start.hidden, Spent(0, 0.0, False))
        return replace(start, observation=self._offering(start.observation, ()), hidden=hidden)

    def _advance(self, state: State[SimulatorHidden], action: Action) -> Advance:
        uses = self._checked(state)["truth"].get("tool_uses", 0)
        calls = with_ids(action.tool_calls, f"call_{state.metadata.step}")
        if not calls:
            return self._moved(state, Action(action.text), (), Spent(uses, 0.0, False), {})
        results = self._budget.execute(calls, {"tool_uses": uses}).results
        spent = self._budget.spent(calls, results, uses)
        info = ToolUse.of(state).after(calls, results).info
        submitted = [c for c, r in zip(calls, results, strict=True) if c.name == SUBMIT and r.ok]
        if submitted:
            return self._moved(state, _move(str(submitted[0].arguments["answer"])), results, spent, info)
        if self._budget.is_used_up(uses):
            return self._moved(state, Action(action.text), results, spent, info)
        hidden: SimulatorHidden = {**_with_truth(state.hidden, spent), "signals": _NO_REWARD}
        shown = self._offering(Observation(LAST_USE if spent.last else ""), results)
        return Advance(shown, hidden, resolved_action=Action(action.text, calls), info=info)

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        yield from super()._signals(state, action, next_state)
        yield Signal("tool_reward", RewardType.STEP, next_state.hidden["truth"]["tool_reward"])

    def _moved(
        self,
        state: State[SimulatorHidden],
        move: Action,
        results: tuple[ToolResult, ...],
        spent: Spent,
        info: Mapping[str, Any],
    ) -> Advance:
        advance = super()._advance(state, move)
        return replace(
            advance,
            observation=self._offering(advance.observation, results),
            hidden=_with_truth(advance.hidden, spent),
            resolved_action=move,
            info={**advance.info, **info},
        )

    def _offering(self, shown: Observation, results: tuple[ToolResult, ...]) -> Observation:
        return replace(shown, tool_results=results, available_tools=self._budget.definitions)


def _with_truth(hidden: SimulatorHidden, spent: Spent) -> SimulatorHidden:
    truth = {**hidden["truth"], "tool_uses": spent.uses, "tool_reward": spent.reward}
    return {**hidden, "truth": truth}


def _move(answer: str) -> Action:
    return Action(answer if "\\boxed" in answer else f"\\boxed{{{answer}}}")
