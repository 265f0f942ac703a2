"""Started by `programs.run` as a script of its own: gives up what it can, then becomes the program.

Usage: launcher.py CPU_SECONDS MEMORY_BYTES FILE_BYTES COMMAND... It uses the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
_PDEATHSIG = 1


def main(cpu: int, memory: int, file: int, command: list[str]) -> int:
    """Run `command` with its limits; returns its exit status as a shell would."""
    _limit(cpu, memory, file)
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is None or libc.unshare(_NEW_USER | _NEW_NET | _NEW_IPC | _NEW_PID) != 0:
        os.execv(command[0], command)
    child = os.fork()  # the first process of the new process namespace: when it ends, all in there end
    if child == 0:
        libc.prctl(_PDEATHSIG, signal.SIGKILL)
        os.execv(command[0], command)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _limit(cpu: int, memory: int, file: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    wanted = {"AS": memory, "CPU": cpu, "FSIZE": file, "CORE": 0}
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
