"""An engine in a child process: its crash, exit or hang is an error here, not the end of this process.

Messages both ways are one header of eight bytes (two little-endian lengths), a JSON object and raw bytes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from typing import IO, Any

from llenvs.core.errors import SimulatorCrashed

LENGTHS = struct.Struct("<II")
"""Bytes of the JSON object and of the raw part that follow."""
GRACE = 2.0
"""Seconds after the limit of a request at which the child ends itself, should its parent be gone by then."""
_TAIL = 1000  # bytes of the child's last words in an error
_LARGEST = 1 << 30  # a longer answer is none: the engine wrote into our pipe


class EngineRefused(Exception):
    """The engine's own code raised in the child, which lives on; `str()` is what it said."""


class EngineProcess:
    """A child process that answers requests one at a time. Not safe under threads: one simulator owns it.

    The child runs `target`, called with `arguments`, in a temporary folder of its own; what that returns is called
    with each request's ``(header, payload)`` and returns the answer's. It does not outlive this process.

    Args:
        target: ``module:function``, importable by this interpreter.
        arguments: keyword arguments of the function, JSON data.
        name: what the engine belongs to (``adapter/name``), for errors.
        start_limit: seconds until it must be ready.
    """

    def __init__(self, target: str, arguments: Mapping[str, Any], *, name: str, start_limit: float = 60.0) -> None:
        self._name = name
        self._owner = os.getpid()
        folder = tempfile.TemporaryDirectory(prefix="llenvs-engine-", ignore_cleanup_errors=True)
        words = tempfile.TemporaryFile()  # noqa: SIM115 - the finalizer closes it
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "llenvs.core.simulator.engine_child", target],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                bufsize=0,
                cwd=folder.name,
                env=environment,
            )
        except OSError as error:
            words.close()
            folder.cleanup()
            raise SimulatorCrashed(name, "starting its engine", f"could not start a process: {error}") from error
        self._words = words
        self._end = weakref.finalize(self, _end, self._process, words, folder, self._owner)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)
        try:
            self.request({"arguments": dict(arguments)}, limit=start_limit, doing="starting its engine")
        except EngineRefused:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._end.alive and os.getpid() == self._owner and self._process.poll() is None

    def request(
        self, header: Mapping[str, Any], payload: bytes = b"", *, limit: float = 60.0, doing: str = "stepping"
    ) -> tuple[Any, bytes]:
        """The engine's answer.

        Args:
            header: JSON data for the engine.
            payload: raw bytes for the engine.
            limit: seconds; a child that takes longer is killed.
            doing: what is being done, for the error.

        Raises:
            SimulatorCrashed: the child died or was killed for its time; every later request raises it too.
            EngineRefused: the engine raised.
        """
        if not self._end.alive or os.getpid() != self._owner:
            raise SimulatorCrashed(self._name, doing, "its engine process had ended before")
        text = json.dumps({**header, "limit": limit}).encode()
        try:
            self._send(LENGTHS.pack(len(text), len(payload)) + text + payload)
            answer, raw = self._receive(time.monotonic() + limit)
        except TimeoutError:
            self.close()
            why = f"no answer within {limit:g} s; its process was ended"
            raise SimulatorCrashed(self._name, doing, why, timed_out=True) from None
        except (OSError, EOFError, ValueError):
            raise SimulatorCrashed(self._name, doing, self._last_words()) from None
        except BaseException:  # Ctrl-C: a late answer would be taken for that of the next request
            self.close()
            raise
        if "error" in answer:
            raise EngineRefused(answer["error"])
        return answer["ok"], raw

    def close(self) -> None:
        """End the child and delete its folder. May be called twice."""
        self._end()

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._to, view) :]

    def _receive(self, deadline: float) -> tuple[Any, bytes]:
        data = bytearray()
        wanted = LENGTHS.size
        lengths: tuple[int, int] | None = None
        while True:
            if len(data) >= wanted:
                if lengths is not None:
                    break
                lengths = LENGTHS.unpack_from(data)
                wanted += sum(lengths)
                if wanted > _LARGEST:
                    raise ValueError("no answer of ours")
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                raise TimeoutError
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                raise EOFError
            data += chunk
        middle = LENGTHS.size + lengths[0]
        answer = json.loads(bytes(data[LENGTHS.size : middle]))
        if not isinstance(answer, dict):
            raise ValueError("no answer of ours")
        return answer, bytes(data[middle:wanted])

    def _last_words(self) -> str:
        try:
            status = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:  # it closed its pipe and lives on
            self._process.kill()
            status = self._process.wait()
        said = f"its engine process ended with {_named(status)}"
        self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - _TAIL))
        tail = self._words.read().decode(errors="replace").strip()
        self.close()
        return f"{said}; the last it wrote: {tail}" if tail else said


def _named(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _end(
    process: subprocess.Popen[bytes],
    words: IO[bytes],
    folder: tempfile.TemporaryDirectory[str],
    owner: int,
) -> None:
    ours = os.getpid() == owner
    for stream in (process.stdin, process.stdout, words):
        if stream is not None:
            stream.close()
    if ours:
        process.kill()
        process.wait()
        folder.cleanup()
    else:  # a forked copy leaves the child and its folder to the process that started them
        process.returncode = 0
        folder._finalizer.detach()  # type: ignore[attr-defined]
