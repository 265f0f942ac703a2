"""Running a Python program that nobody has read.

What holds it: a process group of its own that is killed at the time limit, limits on CPU time, memory and file
size, a temporary working folder, an environment without the user's variables (so no tokens) and, where Linux lets
an ordinary user have them, namespaces without network and without other processes. It may still read what
the user may read, and write where the user may write: that takes a container around the whole environment.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

MEMORY = 2 << 30
"""Bytes of address space."""
FILE_SIZE = 16 << 20
"""Bytes of one file, output included."""
_LAUNCHER = Path(__file__).with_name("launcher.py")


class Outcome(NamedTuple):
    """How a program ended.

    Attributes:
        status: exit status; None when it was killed for its time.
        output: what it wrote to stdout (at most `FILE_SIZE`), undecodable bytes replaced.
        report: what stands in the file ``report`` of its folder, "" without one.
        complaint: the end of what it wrote to stderr.
    """

    status: int | None
    output: str
    report: str
    complaint: str


def run_program(source: str, *, stdin: str = "", files: Mapping[str, str] | None = None, limit: float) -> Outcome:
    """Run `source` with this interpreter, isolated from its site settings.

    Args:
        source: the program.
        stdin: what it can read.
        files: texts put into its working folder, by name.
        limit: seconds, after which it is killed.
    """
    with tempfile.TemporaryDirectory(prefix="llenvs-program-", ignore_cleanup_errors=True) as folder:
        here = Path(folder)
        for name, text in {**(files or {}), "program.py": source, "stdin": stdin}.items():
            (here / name).write_text(text, encoding="utf-8", errors="surrogatepass")
        numbers = (math.ceil(limit) + 1, MEMORY, FILE_SIZE)
        program = [sys.executable, "-I", "-B", "program.py"]
        command = [sys.executable, "-I", "-B", str(_LAUNCHER), *map(str, numbers), *program]
        with (
            open(here / "stdin", "rb") as given,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as complaint,
        ):
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=output,
                stderr=complaint,
                cwd=folder,
                env={
                    "HOME": folder,
                    "TMPDIR": folder,
                    "PATH": os.defpath,
                    "LANG": "C.UTF-8",
                    "PYTHONHASHSEED": "0",
                },
                start_new_session=True,
            )
            status: int | None = None
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            report = here / "report"
            said = report.read_bytes()[:FILE_SIZE].decode(errors="replace") if report.is_file() else ""
            return Outcome(status, _text(output, FILE_SIZE), said, _text(complaint, 500))


def _text(file: object, last: int) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - last))  # type: ignore[attr-defined]
    data: bytes = file.read()  # type: ignore[attr-defined]
    return data.decode(errors="replace")
