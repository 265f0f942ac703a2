"""States kept ready: their bytes on the device, so that a step from a newest state unpacks nothing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llenvs_craftax.sections import Sections


@dataclass(frozen=True, slots=True)
class LiveState:
    """A state that is ready: `row` for the next step, `raw` to read, `sections` as they travel."""

    row: Any
    raw: np.ndarray[Any, Any]
    sections: Sections


@dataclass(frozen=True, slots=True)
class LiveStats:
    """States kept now; and so far: how many were found when asked for, how many had to be unpacked or dropped."""

    live: int
    found: int
    unpacked: int
    evicted: int


class LiveStates:
    """The `limit` states that were used last, by what they are: equal states from anywhere are found."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._states: OrderedDict[tuple[bytes, ...], LiveState] = OrderedDict()
        self._lock = threading.Lock()
        self._found = self._unpacked = self._evicted = 0

    @property
    def stats(self) -> LiveStats:
        """Counts so far."""
        with self._lock:
            return LiveStats(len(self._states), self._found, self._unpacked, self._evicted)

    def get(self, sections: Mapping[str, bytes]) -> LiveState | None:
        """The state with these sections, if it is kept."""
        key = tuple(sections.values())
        with self._lock:
            state = self._states.get(key)
            if state is None or state.sections.keys() != sections.keys():
                self._unpacked += 1
                return None
            self._states.move_to_end(key)
            self._found += 1
            return state

    def put(self, state: LiveState) -> None:
        """Keep `state`, and drop those that were unused for longest."""
        with self._lock:
            self._states[tuple(state.sections.values())] = state
            while len(self._states) > self._limit:
                self._states.popitem(last=False)
                self._evicted += 1

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._states.clear()
