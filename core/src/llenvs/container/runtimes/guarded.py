"""A server that a guardian watches: starting it, waiting until it is ready, and ending it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llenvs.container.errors import ServerKilled, error_from_wire
from llenvs.container.runtimes import guardian
from llenvs.container.runtimes.endpoint import RunningServer
from llenvs.container.runtimes.run_directory import LABEL_VARIABLE, RunDirectory
from llenvs.core.errors import ContainerFailed

GRACE = 8.0
"""Seconds that a server has between SIGTERM and SIGKILL; it gives answers 3 and its environment's close 3."""

_TAIL_BYTES = 64 * 1024
_KILLED = "killed by "


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start.

    Attributes:
        command: of the server; ``{guardian}`` in it becomes the guardian's pid, ``{ready}`` the descriptor that
            the server writes its ready line to. Without the latter that is its standard output.
        environment: its environment variables, all of them.
        what: what is being started, for messages.
        log: the file that its output goes to.
        keep_stdin: give it a standard input that closes when the guardian ends.
        finally_: commands that the guardian runs in the end.
        hold_fds: descriptors that the guardian keeps open (locks), beside the run directory's.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    what: str
    log: Path
    keep_stdin: bool = False
    finally_: Sequence[Sequence[str]] = field(default_factory=tuple)
    hold_fds: Sequence[int] = field(default_factory=tuple)


class GuardedServer(RunningServer):
    """A server under a guardian, in a run directory that is removed with it. Safe under threads.

    After a fork the child's copy does nothing: the server belongs to the parent.
    """

    def __init__(self, directory: RunDirectory, launch: Launch) -> None:
        self._directory = directory
        self._launch = launch
        self._pid = os.getpid()
        self._stopping = threading.Lock()
        self._reading = threading.Lock()
        self._events = b""
        self._ended: str | None = None
        self._final_tail: str | None = None
        ready_read, ready_write = os.pipe()
        try:
            self._guardian = self._start_guardian(ready_write)
        except BaseException:
            os.close(ready_read)
            directory.remove()
            raise
        finally:
            os.close(ready_write)
        self._ready_fd = ready_read
        directory.release()  # the guardian holds it from here on

    def _start_guardian(self, ready_write: int) -> subprocess.Popen[bytes]:
        launch = self._launch
        command = [part.replace("{ready}", str(ready_write)) for part in launch.command]
        ready = {"pass_fds": [ready_write]} if command != list(launch.command) else {"stdout": ready_write}
        spec = {
            "command": command,
            **ready,
            "keep_stdin": launch.keep_stdin,
            "log": str(launch.log),
            "remove": str(self._directory.path),
            "finally": [list(each) for each in launch.finally_],
            "grace": GRACE,
        }
        # -I and -S: nothing of the server's environment variables and site-packages reaches the guardian
        return subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**launch.environment, LABEL_VARIABLE: str(self._directory.path)},
            pass_fds=[self._directory.lock_fd, ready_write, *launch.hold_fds],
            start_new_session=True,  # Ctrl-C is for us; we end the server when we are done with it
        )

    # -- getting ready ------------------------------------------------------------------------------------

    def wait_until_ready(self, timeout: float) -> str:
        """The address that the server says it listens at, once it answers.

        Raises:
            ContainerFailed: it ended, or said nothing within `timeout` seconds.
            LLEnvsError: what kept it from serving, as it said. In all these cases it is stopped.
        """
        with self._stopped_on_failure():
            line = self._ready_line(timeout)
            try:
                answer = json.loads(line)
                if answer["ready"]:
                    return str(answer["address"])
            except (ValueError, KeyError, TypeError):
                raise ContainerFailed(f"{self._launch.what} said {line[:200]!r} instead of being ready") from None
            raise error_from_wire(answer.get("error"))

    def _ready_line(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        text = b""
        while not text.endswith(b"\n"):
            has_more = _is_readable(self._ready_fd, max(deadline - time.monotonic(), 0.0))
            chunk = os.read(self._ready_fd, 4096) if has_more else b""
            if not chunk:
                raise self._not_ready(timeout, gave_up=not has_more)
            text += chunk
        return text

    @contextlib.contextmanager
    def _stopped_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def _not_ready(self, timeout: float, *, gave_up: bool) -> ContainerFailed:
        what = self._launch.what
        if gave_up:
            return ContainerFailed(f"{what} was not ready within {timeout:g} s (start_timeout)", self.log_tail())
        self._await_end()
        how = self._ended or "it hung up"
        cls = ServerKilled if how.startswith(_KILLED) else ContainerFailed
        return cls(f"{what} ended before it was ready ({how})", self.log_tail())

    def _await_end(self) -> None:
        """The ready pipe closes a moment before the guardian has reaped the server and says how it ended."""
        deadline = time.monotonic() + 5.0
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)

    # -- RunningServer ------------------------------------------------------------------------------------

    def is_alive(self) -> bool:
        """Whether the server and its guardian run."""
        with self._reading:
            if self._ended is None and self._final_tail is None:
                self._read_events()
            return self._ended is None and self._final_tail is None

    def _read_events(self) -> None:
        assert self._guardian.stdout is not None
        fd = self._guardian.stdout.fileno()
        while _is_readable(fd, 0.0):
            chunk = os.read(fd, 4096)
            if not chunk:
                self._ended = "its guardian was killed"
                return
            self._events += chunk
        *lines, self._events = self._events.split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "exited" in event:
                self._ended = _how_it_ended(event["exited"])
            elif "failed" in event:
                self._ended = event["failed"]

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the log; after `stop` those that it had then."""
        if self._final_tail is not None:
            return "\n".join(self._final_tail.splitlines()[-lines:])
        return "\n".join(_tail(self._launch.log).splitlines()[-lines:])

    def stop(self) -> None:
        """End the server and its guardian and remove the run directory. Twice is fine."""
        if os.getpid() != self._pid:
            return
        with self._stopping:
            if self._final_tail is not None:
                return
            assert self._guardian.stdin is not None
            assert self._guardian.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self._guardian.stdin.write(b"end\n")
                self._guardian.stdin.flush()
            try:
                self._guardian.wait(GRACE + 15.0)
            except subprocess.TimeoutExpired:
                self._guardian.kill()  # the server gets the kernel's parent-death signal
                self._guardian.wait()
            with contextlib.suppress(BrokenPipeError):
                self._guardian.stdin.close()
            with self._reading:
                self._final_tail = _tail(self._launch.log)
                self._guardian.stdout.close()
            os.close(self._ready_fd)
            self._directory.remove()


def _is_readable(fd: int, timeout: float) -> bool:
    poll = select.poll()  # select() takes no descriptor past 1023
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout * 1000.0))


def _how_it_ended(status: int) -> str:
    number = -status if status < 0 else status - 128  # shells and containers report signals as 128 + number
    names = {each.value: each.name for each in signal.Signals}
    return f"{_KILLED}{names[number]}" if number in names else f"exit status {status}"


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - _TAIL_BYTES, 0))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
