"""The engine's side, in the child process: Jericho by requests (see `llenvs.core.simulator.EngineProcess`).

Requests: ``{"do": "describe", "story": path}``, ``{"do": "start", "story": path, "seed": n}`` and
``{"do": "act", "command": text}`` with, where the engine does not stand there already, ``story`` and a snapshot as
the raw part. The last two are answered by what `Engine._shown` gives and the snapshot after.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from ctypes import c_ubyte
from typing import Any

import numpy as np

from llenvs_jericho.memory import has_score, object_name, read_status
from llenvs_jericho.screen import ending, greatest_score, read_screen
from llenvs_jericho.snapshot import BadSnapshot, pack, unpack

_MAX_OPEN = 8  # games kept loaded; each has its own copy of the C library, less than a megabyte


class Table:
    """One game on the table: the upstream's object and what belongs to the story."""

    def __init__(self, path: str) -> None:
        import jericho

        with open(path, "rb") as file:
            self.story = file.read()
        self.frotz = jericho.FrotzEnv(path, seed=1)
        self.version = self.story[0]
        self.digest = hashlib.sha256(self.story).digest()
        self.supported = bool(self.frotz.is_fully_supported)
        self.counts_in_memory = not self.supported and has_score(self.story)
        self._library = self.frotz.frotz_lib
        # the same two buffers for every look at the game: its own get_state makes new ones, which takes longer
        self._memory_buffer = (c_ubyte * self._library.getRAMSize())()
        self._stack_buffer = (c_ubyte * self._library.getStackSize())()
        self.memory: Any = np.frombuffer(self._memory_buffer, np.uint8)
        self.stack: Any = np.frombuffer(self._stack_buffer, np.uint8)
        self.base = np.frombuffer(self.story, np.uint8)[: len(self.memory)].copy()
        self.score: int | None = None
        self.moves: int | None = None
        self.place: str | None = None
        self.text = ""
        self._names: dict[int, str] = {}

    def describe(self) -> dict[str, Any]:
        """What is known of the game, by the engine or by itself."""
        self.start(1)
        greatest = self.frotz.get_max_score() if self.supported else 0
        if not greatest:
            greatest = greatest_score(self.frotz.step("score")[0]) or 0
        known = self.frotz.bindings or {}
        return {"supported": self.supported, "max_score": greatest or None, "known_as": known.get("name")}

    def start(self, seed: int) -> str:
        """Begin with exactly this seed."""
        self.frotz._seed = seed  # the public setter takes 0 for "the walkthrough's, or the clock"
        self.score = self.moves = self.place = None
        text, info = self.frotz.reset()
        return self._read(text, info)

    def restore(self, snapshot: bytes) -> None:
        """Go where `snapshot` was taken."""
        state, self.score, self.moves = unpack(snapshot, self.base, len(self.stack), self.digest)
        if self.frotz._emulator_halted():  # only a reset takes this flag back
            self.frotz.reset()
        self.frotz.set_state(state)

    def act(self, command: str) -> str:
        """The reply to one line."""
        text, _, _, info = self.frotz.step(command)
        return self._read(text, info)

    def save(self) -> bytes:
        """A snapshot of where the last start or act led."""
        library = self._library
        library.getStack(self._stack_buffer)
        random = library.getRngA(), library.getRngInterval(), library.getRngCounter()
        registers = (
            library.getPC(),
            library.getSP(),
            library.getFP(),
            library.getFrameCount(),
            library.get_opcode(),
        )
        state = self.memory, self.stack, *registers, random
        return pack(state, self.base, self.digest, self.score, self.moves)

    def aside(self, command: str) -> str:
        """The reply to `command`, as if it had not been given."""
        state = self.frotz.get_state()
        text = self.frotz.step(command)[0]
        self.frotz.set_state(state)
        return read_screen(text, self.version).text.strip()

    def _read(self, text: str, info: Mapping[str, Any]) -> str:
        self._library.getRAM(self._memory_buffer)
        screen = read_screen(text, self.version)
        self.text = screen.text
        if self.supported:
            self.score, self.moves = int(info["score"]), int(info["moves"])
            self.place = self._player_location()
        elif self.counts_in_memory:
            status = read_status(self.memory)
            self.score, self.moves, self.place = status.score, status.moves, self._name(status.room)
        else:  # a status line that is not shown for once says nothing new
            self.score = self.score if screen.score is None else screen.score
            self.moves = self.moves if screen.moves is None else screen.moves
            self.place = screen.place
        return text

    def _name(self, room: int) -> str | None:
        if room not in self._names:
            self._names[room] = object_name(self.story, room)
        return self._names[room] or None

    def _player_location(self) -> str | None:
        if self.frotz.player_obj_num <= 0:
            return None
        player = self.frotz.get_object(self.frotz.player_obj_num)
        place = self.frotz.get_object(player.parent) if player is not None and player.parent > 0 else None
        return None if place is None else str(place.name) or None


class Engine:
    """Games by path, and the one that is being played."""

    def __init__(self, status_line: bool, inventory: bool, valid_actions: bool) -> None:
        self._status_line, self._inventory, self._valid_actions = status_line, inventory, valid_actions
        self._tables: OrderedDict[str, Table] = OrderedDict()
        self._current = ""

    def __call__(self, request: dict[str, Any], payload: bytes) -> tuple[Any, bytes]:
        """The answer to one request."""
        match request["do"]:
            case "describe":
                return self._table(request["story"]).describe(), b""
            case "start":
                table = self._table(request["story"])
                return self._shown(table, table.start(request["seed"]), 0)
            case "act":
                table = self._table(request.get("story", self._current))
                if "story" in request:
                    try:
                        table.restore(payload)
                    except BadSnapshot as error:
                        return {"refused": str(error)}, b""
                before = table.score or 0
                return self._shown(table, table.act(request["command"]), before)
        raise ValueError(f"unknown request {request['do']!r}")

    def _shown(self, table: Table, text: str, before: int) -> tuple[Any, bytes]:
        # what is asked aside changes nothing of the game, but the engine's own idea of its end
        won = table.supported and table.frotz.victory()
        lost = table.supported and table.frotz.game_over() and not won
        if table.frotz._emulator_halted():
            return {"halted": True}, b""
        snapshot = table.save()
        shown = text if self._status_line else table.text
        answer: dict[str, Any] = {
            "text": shown,
            "score": table.score,
            "moves": table.moves,
            "location": table.place,
            "gained": (table.score or 0) - before,
            "ending": "won" if won else "lost" if lost else ending(text),
        }
        if answer["ending"] is None:
            if self._inventory:
                answer["inventory"] = table.aside("inventory")
            if self._valid_actions:
                answer["valid_actions"] = sorted(table.frotz.get_valid_actions(use_parallel=False))
        return answer, snapshot

    def _table(self, path: str) -> Table:
        self._current = path
        if path not in self._tables:
            self._tables[path] = Table(path)
        self._tables.move_to_end(path)
        if len(self._tables) > _MAX_OPEN:
            self._tables.popitem(last=False)
        return self._tables[path]


def engine(status_line: bool, inventory: bool, valid_actions: bool) -> Callable[..., tuple[Any, bytes]]:
    """What the child process runs."""
    warnings.simplefilter("ignore")  # of games not fully supported: `describe` says so
    return Engine(status_line, inventory, valid_actions)
