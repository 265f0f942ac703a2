"""The engine's side, in the child process: games by requests (see `llenvs.core.simulator.EngineProcess`).

Requests: ``{"do": "start", "game": path}``, ``{"do": "act", "command": text}`` and ``{"do": "plan"}``, the last
two with ``game`` and a snapshot as the raw part where the engine does not stand there already. The first two are
answered by what `Engine._shown` gives and the snapshot after, the last one by the plan.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

# importing alfworld makes a folder in the home directory where this is not set; here it is the child's own folder
os.environ.setdefault("ALFWORLD_DATA", os.getcwd())

from llenvs_alfworld.game import NOTHING_HAPPENS, Game
from llenvs_alfworld.planner import Planner
from llenvs_alfworld.rewording import reworded
from llenvs_alfworld.snapshot import BadSnapshot


class Engine:
    """Games by path, the least recently used of which are forgotten, and the one that is being played.

    Args:
        lenient: take commands that mean an admissible one.
        expert_plan: make a plan after each step.
        by_commands: see `Game`.
        max_games: games kept loaded.
        max_game_bytes: memory that they may take, about; one game is kept in any case.
    """

    def __init__(
        self, *, lenient: bool, expert_plan: bool, by_commands: bool, max_games: int, max_game_bytes: int
    ) -> None:
        self._lenient, self._expert_plan, self._by_commands = lenient, expert_plan, by_commands
        self._max_games, self._max_game_bytes = max_games, max_game_bytes
        self._planner = Planner()
        self._games: OrderedDict[str, Game] = OrderedDict()
        self._current = ""

    def __call__(self, request: dict[str, Any], payload: bytes) -> tuple[Any, bytes]:
        """The answer to one request."""
        game = self.game(request.get("game", self._current))
        if request["do"] == "start":
            return self._shown(game, game.start(), None, 0.0)
        if "game" in request:
            try:
                game.restore(payload)
            except BadSnapshot as error:
                return {"refused": str(error)}, b""
        match request["do"]:
            case "plan":
                return game.plan(), b""
            case "act":
                before = game.goal_conditions()
                command = self._understood(game, request["command"])
                text = NOTHING_HAPPENS if command is None else game.act(command)
                return self._shown(game, text, command, before)
        raise ValueError(f"unknown request {request['do']!r}")

    def game(self, path: str) -> Game:
        """The game of a file, loaded now if need be."""
        self._current = path
        if path in self._games:
            self._games.move_to_end(path)
            return self._games[path]
        game = self._games[path] = Game(Path(path), self._planner, by_commands=self._by_commands)
        while len(self._games) > 1 and (
            len(self._games) > self._max_games or self._bytes() > self._max_game_bytes
        ):
            self._games.popitem(last=False)
        return game

    def _bytes(self) -> int:
        return sum(game.size for game in self._games.values())

    def _understood(self, game: Game, command: str) -> str | None:
        command = command.strip()
        possible = game.possible()
        if command in possible:
            return command
        return reworded(command, possible) if self._lenient else None

    def _shown(self, game: Game, text: str, command: str | None, before: float) -> tuple[Any, bytes]:
        won, reached = game.won(), game.goal_conditions()
        answer = {
            "text": text,
            "task": game.goal_text,
            "sha256": game.sha256.hex(),
            "admissible": game.admissible(),
            "won": won,
            "goal_conditions": reached,
            "gained": reached - before,
            "command": command,
        }
        if self._expert_plan:
            answer["expert_plan"] = [] if won else game.plan()
        return answer, game.save()


def engine(**options: Any) -> Engine:
    """What the child process runs; the options are those of `Engine`."""
    return Engine(**options)
