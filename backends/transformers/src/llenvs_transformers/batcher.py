"""Puts requests that wait at the same time into one batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from llenvs_transformers.row import Row


class MicroBatcher:
    """One worker thread that takes what waits, up to a limit, and decodes it together.

    Args:
        decode: decodes rows until all are done. An exception of it becomes the error of those that are not.
        max_batch: rows in one batch, at most.
        linger: seconds to wait for further rows as long as they keep coming, while there is room.
        as_error: turns an exception into what the rows' callers get.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[Row]], None],
        *,
        max_batch: int,
        linger: float,
        as_error: Callable[[Exception], Exception],
    ) -> None:
        self._decode = decode
        self._max_batch = max_batch
        self._linger = linger
        self._as_error = as_error
        self._waiting: deque[Row] = deque()
        self._changed = threading.Condition()
        self._stopped: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="llenvs-transformers", daemon=True)
        self._thread.start()

    def submit(self, row: Row) -> None:
        """Queue a row; its future tells when it is done."""
        with self._changed:
            if self._stopped is None:
                self._waiting.append(row)
                self._changed.notify()
                return
        row.fail(self._stopped)

    def stop(self, error: Exception) -> None:
        """End the thread; rows that are not done get `error`. Waits for the token under way."""
        with self._changed:
            self._stopped = error
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: `decode` is to return after the token under way."""
        return self._stopped is not None

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self._decode(batch)
            except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer of these requests
                failure = self._as_error(error)
                for row in batch:
                    row.fail(failure)
            if self._stopped is not None:
                for row in batch:
                    row.fail(self._stopped)
        assert self._stopped is not None
        while self._waiting:
            self._waiting.popleft().fail(self._stopped)

    def _next_batch(self) -> list[Row]:
        """What waits, at least one row; empty: stopped."""
        batch: list[Row] = []
        with self._changed:
            while not batch:
                while not self._waiting and self._stopped is None:
                    self._changed.wait()
                known = 0
                while known < len(self._waiting) < self._max_batch and self._stopped is None:
                    known = len(self._waiting)
                    self._changed.wait(self._linger)
                if self._stopped is not None:
                    return []
                while self._waiting and len(batch) < self._max_batch:
                    row = self._waiting.popleft()
                    if row.active:  # not cancelled while it waited
                        batch.append(row)
        return batch
