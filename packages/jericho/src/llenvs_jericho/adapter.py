"""The adapter: which games there are."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.options import EnvironmentOptions
from llenvs_jericho.catalogue import (
    ALL,
    GAMES_VARIABLE,
    find_story,
    games_folder,
    known_games,
    require_engine,
    story_files,
)
from llenvs_jericho.options import AllGamesOptions, JerichoOptions


class JerichoAdapter(Adapter):
    """Z-machine games by name or by path, and `all` of them together."""

    name = "jericho"
    description = "Jericho: Z-machine text games (Zork and its kin, TextWorld), steppable from any state"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """`all`, the story files in the folder of LLENVS_JERICHO_GAMES, the games that the engine knows."""
        files = story_files(games_folder(None))
        infos = [EnvironmentInfo(ALL, self.name, "all story files at hand, one a task", "all", is_multi_turn=True)]
        infos += [_info(name, f"the story file {path.name}", "story file") for name, path in files.items()]
        known = known_games() if find_spec("jericho") is not None else {}
        infos += [
            _info(name, "a game that the engine knows by checksum", "known game")
            for name in known
            if name not in files
        ]
        return infos

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of `name`; any name may be a story file in the folder that the options give."""
        return {info.name: info for info in self.list_environments()}.get(name) or _info(
            name, "a story file", "story file"
        )

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """Those of every game; `all` has the list of games too."""
        return AllGamesOptions if name == ALL else JerichoOptions

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: no story file of this name, with the nearest names and how to get one.
            NotInstalled: Jericho itself is missing.
            InvalidOption: a folder that is none, a file that is no story, options that do not fit the game.
        """
        from llenvs_jericho.environment import JerichoEnvironment

        require_engine()
        folder = games_folder(options.games_dir)
        names = [name]
        if name == ALL:
            names = list(story_files(folder)) if options.games is None else options.games
            if not names:
                valid = (
                    f"games=[...] with names or paths, or a folder of story files in games_dir or {GAMES_VARIABLE}"
                )
                raise InvalidOption("games", options.games, "no story file is at hand", valid=valid)
        return JerichoEnvironment(name, [find_story(each, folder) for each in names], options)


def _info(name: str, description: str, category: str) -> EnvironmentInfo:
    return EnvironmentInfo(name, "jericho", description, category, is_multi_turn=True)


ADAPTER = JerichoAdapter()
