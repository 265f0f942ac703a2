"""Which games there are: the splits of the data folder, and single game files by path."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from llenvs.core.errors import InvalidOption, NotInstalled, UnknownEnvironment

DATA_VARIABLE = "ALFWORLD_DATA"
"""Environment variable with the folder of the games; the upstream's own."""
DOWNLOADED = Path("~/.cache/alfworld")
"""Where the upstream's command ``alfworld-download`` puts them without it."""
GAME_FILE = "game.tw-pddl"
SPLITS = {
    "train": "train",
    "eval_in_distribution": "valid_seen",
    "eval_out_of_distribution": "valid_unseen",
}
"""The splits, by the names that the upstream's configuration has, and their folders."""
TASK_TYPES = {
    1: "pick_and_place_simple",
    2: "look_at_obj_in_light",
    3: "pick_clean_then_place_in_recep",
    4: "pick_heat_then_place_in_recep",
    5: "pick_cool_then_place_in_recep",
    6: "pick_two_obj_and_place",
}
"""The upstream's numbers of the types of task."""
_RELEASE = "json_2.1.1"  # the folder of the data release; the games' own version is later
_SOLVABLE = re.compile(rb'(?<!\\)"solvable"\s*:\s*true')


@dataclass(frozen=True, slots=True)
class GameFile:
    """A game that can be played.

    Attributes:
        path: absolute, of the file.
        name: its folder below that of the split, with ``/``.
        task_type: one of the values of `TASK_TYPES`, where the folder's name or ``traj_data.json`` tells it.
    """

    path: Path
    name: str
    task_type: str | None


def split_named(name: str) -> str | None:
    """The split that `name` means: its name, its folder's, or ``alfworld:`` before one; None if it means none."""
    name = name.removeprefix("alfworld:")
    folders = {folder: split for split, folder in SPLITS.items()}
    return name if name in SPLITS else folders.get(name)


def require_engine() -> None:
    """Make sure that the upstream can be imported.

    Raises:
        NotInstalled: it is missing, with the command that installs it.
    """
    for module in ("alfworld", "textworld", "fast_downward"):
        if find_spec(module) is None:
            raise NotInstalled(f"ALFWorld ({module})", "alfworld", "on Linux; it needs cmake, g++ and make")


def split_folder(split: str, data_dir: str | None) -> Path:
    """The folder of a split, below `data_dir`, else that of ALFWORLD_DATA, else where downloads are put.

    Raises:
        InvalidOption: there is none; says how to get the games.
    """
    given = data_dir or os.environ.get(DATA_VARIABLE)
    root = Path(given).expanduser() if given else DOWNLOADED.expanduser()
    field = "data_dir" if data_dir or not given else DATA_VARIABLE
    for folder in (root / _RELEASE / SPLITS[split], root / SPLITS[split]):
        if folder.is_dir():
            return folder
    problem = f"has no games of {split} ({_RELEASE}/{SPLITS[split]})"
    if not root.is_dir():
        problem = "is no folder" if given else f"is not given, and {DOWNLOADED} is not there"
    valid = (
        f"a folder with the games, here or in {DATA_VARIABLE}; to get them (about 2 GB) run: alfworld-download, "
        f"with {DATA_VARIABLE} naming where to"
    )
    raise InvalidOption(field, given, problem, valid=valid)


def games_in(folder: Path, task_types: Collection[int] | None = None) -> list[GameFile]:
    """The games below `folder`, sorted by their names; those that the upstream leaves out are left out.

    These are tasks with movable receptacles or sliced objects, and files that do not say that they are solvable.

    Args:
        folder: of a split.
        task_types: numbers of the types of task wanted; None for all.
    """
    wanted = None if task_types is None else {TASK_TYPES[number] for number in task_types}
    games = []
    for path in folder.rglob(GAME_FILE):
        game = _game(path, path.parent.relative_to(folder).as_posix())
        left_out = "movable" in game.name or "Sliced" in game.name
        if not left_out and (wanted is None or game.task_type in wanted) and _SOLVABLE.search(path.read_bytes()):
            games.append(game)
    return sorted(games, key=lambda game: game.name)


def is_path(name: str) -> bool:
    """Whether `name` is meant as the path of a game file or of a folder with games."""
    return "/" in name or name.endswith(GAME_FILE)


def game_at(name: str) -> GameFile:
    """The game at a path: the file, or the folder that holds it.

    Raises:
        UnknownEnvironment: no such file, with those that are near.
        InvalidOption: it is no game of ALFWorld.
    """
    path = Path(name).expanduser()
    path = path / GAME_FILE if path.is_dir() else path
    try:
        content = path.read_bytes()
    except OSError as error:
        near = [path.parent / GAME_FILE, *sorted(path.parent.parent.glob(f"*/{GAME_FILE}"))]
        hint = f"the file cannot be read: {error.strerror}"
        raise UnknownEnvironment(name, [str(each) for each in near if each.is_file()], hint) from None
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    missing = [
        key
        for key in ("pddl_domain", "grammar", "pddl_problem")
        if not isinstance(data, dict) or not isinstance(data.get(key), str)
    ]
    if missing:
        problem = f"is no game of ALFWorld: it lacks {', '.join(missing)}"
        raise InvalidOption("game file", str(path), problem, valid=f"a {GAME_FILE}, as alfworld-generate makes it")
    path = path.resolve()
    return _game(path, "/".join(path.parts[-3:-1]))


def unknown(name: str) -> UnknownEnvironment:
    """The error for a name that means nothing."""
    hint = f"or the path of a {GAME_FILE}, as in alfworld/path/to/{GAME_FILE}"
    return UnknownEnvironment(name, [*SPLITS, *SPLITS.values()], hint)


def _game(path: Path, name: str) -> GameFile:
    for kind in TASK_TYPES.values():
        if any(part.startswith(f"{kind}-") for part in path.parts):
            return GameFile(path.resolve(), name, kind)
    try:
        kind = str(json.loads((path.parent / "traj_data.json").read_bytes())["task_type"])
    except (OSError, ValueError, KeyError, TypeError):
        return GameFile(path.resolve(), name, None)
    return GameFile(path.resolve(), name, kind if kind in TASK_TYPES.values() else None)
