"""The worker of this process: a child that can be killed, for what must not run here.

It is started when first needed, serves all isolated datasets, one request at a time, and is replaced when it
hangs or dies. It has hash seed 0, so that items are the same in every process.
"""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import IO, Any

from llenvs.core.encoding import dumps, loads
from llenvs.core.errors import UpstreamFailed
from llenvs_reasoning_gym.dataset import Dataset
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.scoring import Score, unparsable

START_LIMIT = 180.0
"""Seconds until the worker must be ready, and for building a dataset."""
ENTRY_LIMIT = 300.0
"""Seconds for making one item."""
MAX_OPEN = 64
"""Datasets that the worker keeps built."""
LINGER = 10.0
"""Seconds that the worker outlives its last user, for the next environment of a series."""


class WorkerTimeout(Exception):
    """The worker did not answer in time and was killed."""


class WorkerDied(Exception):
    """The worker ended without answering."""


class WorkerUnavailable(Exception):
    """There is no worker, or it cannot build the dataset: nothing that an answer could be blamed for."""


class WorkerError(Exception):
    """The worker answered with an error; `str()` is what it said."""


class Worker:
    """A child process that answers requests, see `worker_process`. Safe under threads and after a fork."""

    def __init__(self, linger: float = LINGER) -> None:
        self._linger = linger
        self._ending_timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._open: OrderedDict[str, None] = OrderedDict()
        self._users = 0

    @property
    def pid(self) -> int | None:
        """Process id of the child; None while there is none."""
        return None if self._process is None else self._process.pid

    def acquire(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1
            if self._ending_timer is not None:
                self._ending_timer.cancel()
                self._ending_timer = None

    def release(self) -> None:
        """Count one user less; some seconds after the last the child ends."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._process is not None:
                self._ending_timer = threading.Timer(self._linger, self._stop_unused)
                self._ending_timer.daemon = True
                self._ending_timer.start()

    def _stop_unused(self) -> None:
        with self._lock:
            if self._users <= 0:
                self.stop()

    def request(self, key: str, opening: Mapping[str, Any], request: Mapping[str, Any], limit: float) -> Any:
        """The reply to `request` on the dataset `key`, which `opening` builds if need be.

        Raises:
            WorkerTimeout: no reply within `limit` seconds.
            WorkerDied: the child ended while it worked on the request.
            WorkerError: the child said what went wrong.
            WorkerUnavailable: the child could not be started, or could not build the dataset.
        """
        with self._lock:
            try:
                self._prepare(key, opening)
                return self._exchange({**request, "key": key, "limit": limit}, limit)
            except WorkerError:
                raise
            except BaseException:  # after anything else (Ctrl-C too) a late reply could answer the next request
                self.stop()
                raise

    def stop(self) -> None:
        """End the child, if there is one. A later request starts a new one."""
        with self._lock:
            process, self._process = self._process, None
            self._open.clear()
        if process is not None:
            process.kill()
            process.wait()
            _close(process.stdin)

    def forget(self) -> None:
        """Leave the child to the process that started it (called in a forked copy)."""
        if self._process is not None:
            _close(self._process.stdin)
        self.__init__(self._linger)  # type: ignore[misc]

    def _prepare(self, key: str, opening: Mapping[str, Any]) -> None:
        """Start the child and build the dataset, where that is still to do."""
        try:
            self._start()
            if key not in self._open:
                self._exchange({"op": "open", "key": key, **opening}, START_LIMIT)
                self._open[key] = None
            self._open.move_to_end(key)
            if len(self._open) > MAX_OPEN:
                self._exchange({"op": "close", "key": self._open.popitem(last=False)[0]}, START_LIMIT)
        except (WorkerTimeout, WorkerDied, WorkerError) as error:
            self.stop()
            raise WorkerUnavailable(str(error)) from None

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        environment = os.environ | {
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", f"{__package__}.worker_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=environment,
            )
        except OSError as error:
            raise WorkerDied(f"could not be started: {error}") from None
        self._replies = queue.SimpleQueue()
        reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._replies), name="reasoning-gym-worker", daemon=True
        )
        reader.start()
        self._receive(START_LIMIT)

    def _exchange(self, request: Mapping[str, Any], limit: float) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            unsent = memoryview(dumps(dict(request)).encode() + b"\n")
            while unsent:
                unsent = unsent[self._process.stdin.write(unsent) :]
        except OSError:
            raise WorkerDied(self._status()) from None
        return self._receive(limit)

    def _receive(self, limit: float) -> Any:
        try:
            line = self._replies.get(timeout=limit)
        except queue.Empty:
            raise WorkerTimeout(f"no answer within {limit:g} s") from None
        if not line:
            raise WorkerDied(self._status())
        reply = loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply["ok"]

    def _status(self) -> str:
        status = None if self._process is None else self._process.wait()
        return f"the worker process ended with status {status}"


def _read(stream: IO[bytes], replies: queue.SimpleQueue[bytes]) -> None:
    """Pass lines on, and an empty one at the end. Owns `stream`: nobody else closes it under a read."""
    line = bytearray()
    with stream:
        while chunk := stream.read(1 << 16):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                replies.put(bytes(line + end))
                line.clear()
            line += rest
    replies.put(b"")


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        stream.close()


WORKER = Worker()
"""The worker of this process."""

atexit.register(WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.forget)


class IsolatedDataset(Dataset):
    """An upstream dataset in the worker process."""

    def __init__(self, recipe: Recipe, repair: bool = True, time_limit: float = 10.0) -> None:
        recipe.upstream_config()  # what is wrong with it is said here and now
        self.recipe = recipe
        self._key = f"{recipe.key} {repair}"
        self._opening = {"name": recipe.name, "config": dict(recipe.config), "repair": repair}
        self._time_limit = time_limit
        self._closed = False
        WORKER.acquire()

    def entry(self, index: int) -> dict[str, Any]:
        """See `Dataset`.

        Raises:
            UpstreamFailed: it raised, or took longer than `ENTRY_LIMIT`.
        """
        request = {"op": "entry", "index": index}
        try:
            entry: dict[str, Any] = WORKER.request(self._key, self._opening, request, ENTRY_LIMIT)
        except (WorkerError, WorkerTimeout, WorkerDied, WorkerUnavailable) as error:
            raise self._failed(f"making item {index}", error) from None
        return entry

    def score(self, answer: str | None, entry: Mapping[str, Any]) -> Score:
        """See `Dataset`. An answer that makes the worker hang, die or fail is worth what an unparsable one is."""
        request = {"op": "score", "answer": answer, "entry": dict(entry)}
        try:
            try:
                reply = WORKER.request(self._key, self._opening, request, self._time_limit)
            except WorkerDied:  # once may be chance (a machine short of memory), twice is the answer
                reply = WORKER.request(self._key, self._opening, request, self._time_limit)
            return Score(*reply)
        except WorkerUnavailable as unavailable:
            raise self._failed("scoring an answer", unavailable) from None
        except WorkerTimeout:
            error = f"scoring took longer than {self._time_limit:g} s"
        except (WorkerDied, WorkerError) as failure:
            error = str(failure)
        return unparsable(entry["metadata"].get("source_dataset", self.recipe.name), error)

    def close(self) -> None:
        """Let the worker go; soon after its last dataset it ends."""
        if not self._closed:
            self._closed = True
            WORKER.release()

    def _failed(self, doing: str, error: Exception) -> UpstreamFailed:
        return UpstreamFailed(f"reasoning_gym/{self.recipe.name}", doing, str(error))
