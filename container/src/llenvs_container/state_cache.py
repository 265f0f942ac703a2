"""States the server still holds, by content key: a cache, never the truth."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from llenvs.core.state import State


@dataclass(frozen=True, slots=True)
class HeldState:
    """A state and the JSON text of its hidden part (unsealed), which a step that leaves it alone reuses."""

    state: State[Any]
    hidden: str
    size: int


class StateCache:
    """The most recently used states. Bounded in number and in bytes of JSON text; safe under threads."""

    def __init__(self, max_states: int = 8192, max_bytes: int = 256 << 20) -> None:
        self.max_states = max_states
        self.max_bytes = max_bytes
        self.hits = 0
        self.misses = 0
        self.bytes = 0
        self._held: OrderedDict[str, HeldState] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, held: HeldState) -> bool:
        """Hold a state; whether there is room for it at all."""
        if held.size > self.max_bytes or self.max_states < 1:
            return False
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self.bytes -= before.size
            self._held[key] = held
            self.bytes += held.size
            while len(self._held) > self.max_states or self.bytes > self.max_bytes:
                _, oldest = self._held.popitem(last=False)
                self.bytes -= oldest.size
        return True

    def get(self, key: str) -> HeldState | None:
        """The state of this key, if it is still held."""
        with self._lock:
            held = self._held.get(key)
            if held is None:
                self.misses += 1
                return None
            self.hits += 1
            self._held.move_to_end(key)
            return held

    def __len__(self) -> int:
        return len(self._held)
