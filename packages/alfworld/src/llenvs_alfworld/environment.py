"""The environments: household tasks, steppable from any state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version as distribution_version
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden, Snapshots
from llenvs.core.simulator.recipe import snapshot_key
from llenvs.core.state import State
from llenvs_alfworld.catalogue import GameFile
from llenvs_alfworld.options import AlfworldOptions
from llenvs_alfworld.simulator import AlfworldSimulator


class AlfworldEnvironment(SimulatorEnvironment):
    """Household tasks: task i is the i-th game by name. Nothing is left to chance, so seeds choose the task alone.

    Signals:
        task_completion: with the last step of an episode, 1.0 if the goal holds, else 0.0; the reward, unless the
            option `reward` is another. It decides success.
        goal_conditions: with the last step, the share of the goal's conditions that hold, from 0 to 1 (see
            `llenvs_alfworld.goal`).
        progress: what the step added to that share, negative when it lost some.
        valid_action: 1.0 when the game took the command, 0.0 when nothing happened.

    The info of each state has `admissible_commands`, and `command`, what the game was told (None for nothing).
    `truth` in the hidden state has the game's name and SHA-256, its task type, whether it is won, the share of the
    goal's conditions and, if asked for, the expert's plan.
    """

    def __init__(self, name: str, games: Sequence[GameFile], options: AlfworldOptions) -> None:
        spec = EnvironmentSpec(
            name,
            "alfworld",
            max_steps=options.max_steps,
            is_multi_turn=True,
            success_signal="task_completion",
            description="household task" if len(games) == 1 else f"{len(games)} household tasks",
            metadata={
                **{package: distribution_version(package) for package in ("alfworld", "textworld")},
                "games": len(games),
                "task_types": dict(sorted(Counter(game.task_type or "unknown" for game in games).items())),
            },
        )
        super().__init__(
            spec,
            lambda: AlfworldSimulator(spec.id, games, options),
            num_tasks=len(games),
            snapshots=Snapshots.PORTABLE,
            limits=options.limits,
            reward_functions=make_reward_functions(options.extra_rewards),
        )
        self._games = tuple(games)
        self._weight = 1.0 if options.reward == "task_completion" else 0.0

    @property
    def games(self) -> tuple[GameFile, ...]:
        """The game files, one a task."""
        return self._games

    def expert_plan(self, state: State[SimulatorHidden]) -> tuple[str, ...] | None:
        """The planner's commands from `state` to the goal; none when it is won, None when the planner finds none.

        Takes up to some seconds.

        Raises:
            InvalidAction: the state belongs to another environment or is damaged.
        """
        hidden = self._checked(state)
        recipe, snapshot = hidden["recipe"], hidden["snapshot"]
        assert snapshot is not None

        def ask() -> tuple[str, ...] | None:
            with self._owned(self._standing_at(state), "planning") as simulator:
                assert isinstance(simulator, AlfworldSimulator)
                plan = simulator.plan()
            self._cache.put(simulator, snapshot_key(recipe, snapshot), recipe.task_index)
            return plan

        return () if hidden["truth"].get("won") else self._with_second_try(ask)

    def walkthrough(self, task_index: int = 0) -> tuple[str, ...]:
        """The commands that win a game, as its file has them: made by the upstream's hand-written expert.

        Raises:
            TaskIndexOutOfRange: there is no such task.
            InvalidOption: the file has none, as those from before ALFWorld 0.4.
        """
        if not 0 <= task_index < len(self._games):
            raise TaskIndexOutOfRange(task_index, len(self._games), self.spec.id)
        path = self._games[task_index].path
        commands: Any = json.loads(path.read_bytes()).get("walkthrough")
        if not commands:
            problem = "its game file holds no walkthrough; ask for expert_plan(state)"
            raise InvalidOption("task_index", task_index, problem)
        return tuple(commands)

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        hidden = next_state.hidden
        yield from hidden["signals"]
        if next_state.is_terminal:
            truth = hidden["truth"]
            yield Signal("goal_conditions", RewardType.OUTCOME, truth["goal_conditions"], None, 0.0)
            yield Signal("task_completion", RewardType.OUTCOME, float(truth["won"]), None, self._weight)
