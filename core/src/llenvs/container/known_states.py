"""Which states the servers hold, so that a state they made is named instead of sent back."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from llenvs.core.state import State


@dataclass(frozen=True, slots=True)
class KnownState:
    """A state that the server `holder` (a number that no other server of this client had) holds under `key`."""

    state: State[Any]
    key: str
    holder: int


class KnownStates:
    """The newest states that servers gave, by identity. Bounded in number; safe under threads.

    The states are kept alive here, so that the identity of one that is gone cannot pass for another's.
    """

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._by_id: OrderedDict[int, KnownState] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, state: State[Any], key: str | None, holder: int) -> None:
        """Note that `holder` holds `state`; nothing to note when it gave no key."""
        if key is None:
            return
        with self._lock:
            self._by_id[id(state)] = KnownState(state, key, holder)
            self._by_id.move_to_end(id(state))
            if len(self._by_id) > self._limit:
                self._by_id.popitem(last=False)

    def find(self, state: State[Any]) -> KnownState | None:
        """What is known of this very object."""
        with self._lock:
            return self._by_id.get(id(state))

    def forget(self, state: State[Any]) -> None:
        """The server said that it no longer holds `state`."""
        with self._lock:
            self._by_id.pop(id(state), None)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._by_id.clear()
