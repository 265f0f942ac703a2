"""Which games there are: those that the engine knows, and the story files at hand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from llenvs.core.errors import InvalidOption, NotInstalled, UnknownEnvironment
from llenvs_jericho.story import SUFFIXES, Story

GAMES_VARIABLE = "LLENVS_JERICHO_GAMES"
"""Environment variable with the folder of the story files."""
ALL = "all"
"""The environment whose tasks are all games."""


@dataclass(frozen=True, slots=True)
class KnownGame:
    """What the engine brings along for a game it knows by checksum: the walkthrough, and the seed it holds for."""

    name: str
    md5: str
    seed: int
    walkthrough: tuple[str, ...]


def require_engine() -> None:
    """Make sure that Jericho can be imported.

    Raises:
        NotInstalled: it is missing, with the command that installs it.
    """
    if find_spec("jericho") is None:
        raise NotInstalled("Jericho, the engine,", "jericho", "on Linux; it needs gcc and make")


@cache
def known_games() -> dict[str, KnownGame]:
    """By name; imports the upstream, whose data this is.

    Raises:
        NotInstalled: Jericho is missing.
    """
    require_engine()
    from jericho.defines import BINDINGS_DICT

    games = {}
    for md5, bindings in BINDINGS_DICT.items():
        steps = tuple(bindings.get("walkthrough", "").split("/")) if bindings.get("walkthrough") else ()
        games[bindings["name"]] = KnownGame(bindings["name"], md5, bindings.get("seed", 0), steps)
    return dict(sorted(games.items()))


def games_folder(games_dir: str | None) -> Path | None:
    """The folder of the story files: the option, else the environment variable; None when neither is given.

    Raises:
        InvalidOption: it is no folder.
    """
    given = games_dir or os.environ.get(GAMES_VARIABLE)
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        field = "games_dir" if games_dir else GAMES_VARIABLE
        raise InvalidOption(field, given, "is no folder", valid="a folder with story files (.z3, .z4, .z5, .z8)")
    return folder


def story_files(folder: Path | None) -> dict[str, Path]:
    """Story files in `folder` by their names without the ending, sorted."""
    if folder is None:
        return {}
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES}


def is_path(name: str) -> bool:
    """Whether `name` is meant as the path of a story file."""
    return "/" in name or name.lower().endswith(SUFFIXES)


def find_story(name: str, folder: Path | None) -> Story:
    """The story called `name`: a path, a file of `folder`, or the one there that the engine knows by this name.

    Raises:
        UnknownEnvironment: there is none; says how to get it.
        InvalidOption: the file is no story.
    """
    if is_path(name):
        return Story.read(Path(name).expanduser(), "story file")
    files = story_files(folder)
    if name in files:
        return Story.read(files[name], "story file")
    known = known_games()
    if name in known:
        for path in files.values():
            story = Story.read(path, "story file")
            if story.md5 == known[name].md5:
                return story
    valid = [] if name in known else sorted({ALL, *files, *known})
    raise UnknownEnvironment(name, valid, _how(folder))


def _how(folder: Path | None) -> str:
    where = f"{folder} holds no story file of it" if folder is not None else "no folder of story files is given"
    return (
        f"{where}; Jericho ships no game: put story files into a folder and name it with games_dir=... or "
        f"{GAMES_VARIABLE}, or give the path of one, as in jericho/path/to/story.z5"
    )
