"""Python programs of a model, run in a process of their own with limits that hold."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from llenvs_gem.upstream import module

OUTPUT_LIMIT = 8 << 20
"""Bytes that a program may write to standard output, to standard error and to each file."""
_LONGEST_ARGUMENT = 100_000  # bytes; Linux takes 128 kB
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "SYSTEMROOT")

# Sets the limits and becomes the program: in the child, before any of its code, without a preexec_fn (which is
# unsafe in a process with threads).
_LAUNCHER = """
import os, sys
seconds, memory, output = map(int, sys.argv[1:4])
try:
    import resource
except ImportError:
    resource = None
if resource:
    def least(kind, value):
        soft, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    least(resource.RLIMIT_CPU, seconds)
    least(resource.RLIMIT_AS, memory)
    least(resource.RLIMIT_FSIZE, output)
    least(resource.RLIMIT_CORE, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[4:]])
"""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program did.

    Attributes:
        ok: whether it ended by itself, with status 0.
        stdout, stderr: what it wrote, as UTF-8, at most `OUTPUT_LIMIT` bytes each.
        timed_out: whether it was killed for its time.
    """

    ok: bool
    stdout: str
    stderr: str
    timed_out: bool = False


def run_program(
    code: str, stdin: str = "", *, time_limit: float = 10.0, memory_limit: int = 2 << 30
) -> ProgramResult:
    """Run `code` with this interpreter, in an empty folder that is deleted afterwards.

    As in the upstream, a program that fails over a name that is not defined is run once more behind the upstream's
    prelude of imports. It is killed, with all processes of its group, when its time is up.

    Args:
        code: a Python program.
        stdin: what it can read.
        time_limit: seconds.
        memory_limit: bytes of address space.
    """
    result = _run(code, stdin, time_limit, memory_limit)
    if not result.ok and not result.timed_out and "is not defined" in result.stderr:
        prelude = module("gem.utils.constants").BASE_IMPORTS
        result = _run(f"{prelude}\n{code}", stdin, time_limit, memory_limit)
    return result


def _run(code: str, stdin: str, time_limit: float, memory_limit: int) -> ProgramResult:
    with (
        tempfile.TemporaryDirectory(prefix="llenvs-program-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode("utf-8", "replace"))
        given.seek(0)
        text = code.encode("utf-8", "replace")
        if len(text) < _LONGEST_ARGUMENT and b"\0" not in text:
            program = ["-c", text.decode()]
        else:
            path = Path(folder, "program.py")
            path.write_bytes(text)
            program = [path.name]
        limits = [str(int(time_limit) + 2), str(memory_limit), str(OUTPUT_LIMIT)]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *limits, *program],
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(time_limit)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill(process)
        return ProgramResult(process.returncode == 0 and not timed_out, _read(out), _read(err).strip(), timed_out)


def _environment(folder: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "HOME": folder,
        "TMPDIR": folder,
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started; all of its group, which outlives its first process."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(OUTPUT_LIMIT).decode("utf-8", "replace")
