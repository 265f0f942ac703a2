"""The adapter: the splits of ALFWorld, and single games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs_alfworld.catalogue import (
    SPLITS,
    TASK_TYPES,
    game_at,
    games_in,
    is_path,
    require_engine,
    split_folder,
    split_named,
    unknown,
)
from llenvs_alfworld.options import AlfworldOptions, SplitOptions


class AlfworldAdapter(Adapter):
    """Household tasks as text games: the three splits, and any game file by path."""

    name = "alfworld"
    description = "ALFWorld: household tasks as text games (ALFRED in TextWorld), steppable from any state"
    options = SplitOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """The splits."""
        return [_info(split, f"the games of {folder}", "split") for split, folder in SPLITS.items()]

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of a split, also by the name of its folder, or of a game file by its path.

        Raises:
            UnknownEnvironment: with the nearest names.
        """
        split = split_named(name)
        if split is not None:
            return next(info for info in self.list_environments() if info.name == split)
        if is_path(name):
            return _info(name, "a game file", "game file")
        raise unknown(name)

    def options_for(self, name: str) -> type[AlfworldOptions]:
        """Those of the splits; a single game has no choice of games."""
        return AlfworldOptions if split_named(name) is None else SplitOptions

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: neither a split nor a path, with the nearest names.
            NotInstalled: ALFWorld itself is missing.
            InvalidOption: no games there, with how to get them; a file that is no game.
        """
        from llenvs_alfworld.environment import AlfworldEnvironment

        require_engine()
        split = split_named(name)
        if split is None:
            if not is_path(name):
                raise unknown(name)
            return AlfworldEnvironment(name, [game_at(name)], options)
        folder = split_folder(split, options.data_dir)
        games = games_in(folder, options.task_types)
        if not games:
            if options.task_types is None:
                raise InvalidOption("data_dir", options.data_dir, f"{folder} holds no solvable game")
            kinds = ", ".join(TASK_TYPES[number] for number in options.task_types)
            raise InvalidOption("task_types", options.task_types, f"{folder} holds no game of {kinds}")
        return AlfworldEnvironment(split, games, options)


def _info(name: str, description: str, category: str) -> EnvironmentInfo:
    return EnvironmentInfo(name, "alfworld", description, category, is_multi_turn=True)


ADAPTER = AlfworldAdapter()
