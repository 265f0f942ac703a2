"""The guardian: a small process between us and a server, which leaves nothing behind whoever dies first.

Run as ``python -I -S guardian.py '<json>'``, and inside a container as its first process. It starts the server in
a process group of its own and then waits. It ends when its standard input closes (its owner died, by whatever
signal) or says anything (its owner ends it, and will remove the directory), when SIGTERM or SIGINT tell it to, or
when its parent is gone. Then it ends the server's group and everything else that the server started (on Linux it
adopts orphans, so that daemons are found as well), and removes the server's directory.

Parent-death signals are not enough by themselves: Linux sends them when the *thread* that started the child ends,
and servers are started from threads. The guardian has one thread, so it can use them for the server.

It writes one JSON line per event on its standard output: ``{"pid": 12}``, then ``{"exited": 3}`` when the server
ended by itself. Only the standard library is imported, and little of it: it starts in about 20 ms.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOG_LIMIT = 64 * 1024 * 1024
_TICK = 1.0
_FINALLY_TIMEOUT = 20.0

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def main() -> None:
    """Guard the server that ``sys.argv[1]`` describes.

    Keys:
        command: list of strings; ``{guardian}`` in them stands for this process's pid.
        pass_fds: descriptors to hand on to it.
        stdout: a descriptor for its standard output; without it that goes to `log`.
        log: path of the file for its output; None for this process's own output.
        keep_stdin: its standard input stays open as long as the guardian lives; else it is empty.
        grace: seconds between SIGTERM and SIGKILL.
        finally: commands to run in the end.
        remove: directory to remove in the end.
        quiet: report no events.
        exit_with_server: end with the server instead of waiting for the owner.
    """
    spec = json.loads(sys.argv[1])
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signals = _Signals()
    say = _ignore if spec.get("quiet") else _say
    server = None
    try:
        server = _start(spec)
        say({"pid": server.pid})
    except OSError as error:
        say({"failed": f"{spec['command'][0]}: {error.strerror}"})
    owner_removes = _watch(spec, server, signals, say)
    if server is not None:
        _end_group(server, spec.get("grace", 3.0))
        _end_descendants()
    for command in spec.get("finally", ()):
        _run(command)
    if spec.get("remove") and not owner_removes:
        import shutil  # here, since it takes a fifth of the time that the guardian needs to start

        shutil.rmtree(spec["remove"], ignore_errors=True)
    status = 0 if server is None else server.returncode
    sys.exit(status if status >= 0 else 128 - status)


class _Signals:
    """Signals as something that `select` waits for."""

    def __init__(self) -> None:
        self.told_to_end = False
        self.fd, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _end(self, _signal: int, _frame: object) -> None:
        self.told_to_end = True


def _watch(
    spec: dict[str, Any],
    server: subprocess.Popen[bytes] | None,
    signals: _Signals,
    say: Callable[[dict[str, Any]], None],
) -> bool:
    """Wait for a reason to end; whether the owner will remove the directory."""
    parent = os.getppid()
    running = server is not None
    while not signals.told_to_end and os.getppid() == parent:
        ready, _, _ = select.select([0, signals.fd], [], [], _TICK)
        if 0 in ready:
            return bool(os.read(0, 4096))
        if signals.fd in ready:
            os.read(signals.fd, 4096)
        if server is not None and running and server.poll() is not None:
            running = False
            # what it started must not outlive it
            _signal_group(server.pid, signal.SIGKILL)
            _end_descendants()
            say({"exited": server.returncode})
            if spec.get("exit_with_server"):
                return False
        _reap(server)
        _bound_log(spec.get("log"))
    return False


def _start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    log = None
    parent_pid = str(os.getpid())
    pass_fds = spec.get("pass_fds", [])
    try:
        if spec.get("log") is not None:
            log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return subprocess.Popen(
            [part.replace("{guardian}", parent_pid) for part in spec["command"]],
            stdin=subprocess.PIPE if spec.get("keep_stdin") else subprocess.DEVNULL,
            stdout=spec.get("stdout", log),
            stderr=log,
            pass_fds=pass_fds,
            process_group=0,
            preexec_fn=_die_with_parent,  # one thread, so this is safe
        )
    finally:
        for fd in (*pass_fds, log, spec.get("stdout")):
            if fd is not None:
                os.close(fd)  # a pipe must close when the server closes its end


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _say(event: dict[str, Any]) -> None:
    try:
        os.write(1, json.dumps(event).encode() + b"\n")
    except OSError:
        return  # the owner is gone; standard input says so too


def _ignore(event: dict[str, Any]) -> None:
    """Say nothing: in a container the standard output is the server's."""


def _end_group(server: subprocess.Popen[bytes], grace: float) -> None:
    """SIGTERM to the server's process group, and SIGKILL to what is left of it `grace` seconds after."""
    if server.returncode is not None:
        return  # its number may be another group's by now
    _signal_group(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _end_descendants() -> None:
    """Kill and reap all children of this process, orphans that it adopted included, until there are none."""
    for _ in range(1000):
        children = _children()
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for pid in children:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                continue


def _children() -> list[int]:
    """Pids of this process's children; none where the system has no such list."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _reap(server: subprocess.Popen[bytes] | None) -> None:
    """Reap adopted orphans that ended, but never the server, whose exit status is wanted."""
    for pid in _children():
        if server is None or pid != server.pid:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def _run(command: list[str]) -> None:
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, check=False, timeout=_FINALLY_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return  # the clean-up command finds what is left


def _bound_log(path: str | None) -> None:
    """Start the log anew when it has grown past the limit: an adapter that never stops writing fills no disk."""
    try:
        if path is not None and os.path.getsize(path) > _LOG_LIMIT:
            os.truncate(path, 0)  # writers append, so they go on from the start
    except OSError:
        return


if __name__ == "__main__":
    main()
