"""The simulator: games in an engine process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import InvalidAction
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import EngineProcess, Frame, Simulator, Snapshots
from llenvs_alfworld.catalogue import GameFile
from llenvs_alfworld.options import AlfworldOptions


class AlfworldSimulator(Simulator):
    """One engine process, which plays any of the games."""

    snapshots: ClassVar[Snapshots] = Snapshots.PORTABLE

    def __init__(self, name: str, games: Sequence[GameFile], options: AlfworldOptions) -> None:
        self._name, self._games, self._options = name, games, options
        self._weight = 1.0 if options.reward == "progress" else 0.0
        self._process = EngineProcess("llenvs_alfworld.engine:engine", engine_options(options), name=name)
        self._game = games[0]
        self._snapshot = b""
        self._elsewhere = False  # whether the engine has yet to go to the snapshot

    @property
    def alive(self) -> bool:
        """See `Simulator`."""
        return self._process.alive

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`. Nothing in a game is left to chance: the seed does not matter."""
        self._game = self._games[task_index]
        request = {"do": "start", "game": str(self._game.path)}
        return self._frame(*self._ask(request, b"", f"starting {self._game.name}"), None)

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        request = {"do": "act", "command": action.text}
        answer, snapshot = self._ask_here(request, f"taking the action {action.text[:80]!r}")
        return self._frame(answer, snapshot, action)

    def plan(self) -> tuple[str, ...] | None:
        """The planner's commands from here to the goal; None when it finds none."""
        answer, _ = self._ask_here({"do": "plan"}, "planning")
        self._elsewhere = False
        return None if answer is None else tuple(answer)

    def save(self) -> bytes:
        """See `Simulator`."""
        return self._snapshot

    def restore(self, snapshot: bytes, task_index: int, seed: int) -> None:
        """See `Simulator`; the engine is told together with the next request."""
        self._game, self._snapshot, self._elsewhere = self._games[task_index], snapshot, True

    def close(self) -> None:
        """End the engine process."""
        self._process.close()

    def _ask_here(self, request: dict[str, Any], doing: str) -> tuple[Any, bytes]:
        """Ask about where the simulator stands."""
        if not self._elsewhere:
            return self._ask(request, b"", doing)
        return self._ask({**request, "game": str(self._game.path)}, self._snapshot, doing)

    def _ask(self, request: dict[str, Any], payload: bytes, doing: str) -> tuple[Any, bytes]:
        answer, snapshot = self._process.request(request, payload, limit=self._options.time_limit, doing=doing)
        if isinstance(answer, dict) and "refused" in answer:
            raise InvalidAction(f"{self._name}: {answer['refused']}")
        return answer, snapshot

    def _frame(self, answer: dict[str, Any], snapshot: bytes, action: Action | None) -> Frame:
        self._snapshot, self._elsewhere = snapshot, False
        command = answer["command"]
        # the same commands come again and again: many kept states share one text of each
        admissible = tuple(sys.intern(each) for each in answer["admissible"])
        text, task = answer["text"], sys.intern(answer["task"])
        if self._options.include_admissible_commands and not (action is not None and answer["won"]):
            text = f"{text}\n\nAdmissible commands: {', '.join(admissible)}"
        truth = {
            "game": self._game.name,
            "sha256": sys.intern(answer["sha256"]),
            "task_type": self._game.task_type,
            "won": answer["won"],
            "goal_conditions": answer["goal_conditions"],
        }
        if "expert_plan" in answer:
            plan = answer["expert_plan"]
            truth["expert_plan"] = None if plan is None else tuple(sys.intern(each) for each in plan)
        return Frame(
            Observation(text, task or None),
            () if action is None else self._signals(answer),
            terminated=action is not None and answer["won"],
            resolved_action=None if command is None else Action(command),
            info={"admissible_commands": admissible, "command": command},
            truth=truth,
        )

    def _signals(self, answer: dict[str, Any]) -> tuple[Signal, ...]:
        return (
            Signal("progress", RewardType.STEP, answer["gained"], None, self._weight),
            Signal("valid_action", RewardType.STEP, float(answer["command"] is not None), None, 0.0),
        )


def engine_options(options: AlfworldOptions) -> dict[str, Any]:
    """What `llenvs_alfworld.engine.engine` takes."""
    return {
        "lenient": options.commands == "lenient",
        "expert_plan": options.expert_plan,
        "by_commands": options.state == "commands",
        "max_games": options.max_games,
        "max_game_bytes": options.max_game_bytes,
    }
