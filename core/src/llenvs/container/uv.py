"""uv, the program that makes sandboxes: finding it and running it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from llenvs.core.errors import ContainerFailed

_OF_OTHER_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__")


class Uv:
    """The uv of this machine: on PATH, beside this interpreter, or installed as a module.

    Raises:
        ContainerFailed: there is none that runs; the message says how to get it.
    """

    def __init__(self) -> None:
        for command in _candidates():
            found = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
            if found.returncode == 0:
                self._command = command
                self.version = found.stdout.strip()
                return
        raise ContainerFailed("uv makes the environments of runtime 'venv', and is not here; run: pip install uv")

    def run(
        self, arguments: Sequence[str], *, cwd: Path, pass_fds: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run uv without downloading Pythons; stdout and stderr come in the result, the exit status unchecked.

        Args:
            cwd: its working directory; uv reads ``[tool.uv]`` of the project that this is in.
            pass_fds: descriptors that it and what it starts keep open.
        """
        return subprocess.run(
            [*self._command, "--no-progress", "--color", "never", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**clean_environment(os.environ), "UV_PYTHON_DOWNLOADS": "never"},
            pass_fds=pass_fds,
            check=False,
        )

    def find_python(self, version: str) -> str | None:
        """Path of an interpreter of `version` ("3.12", or a path) on this machine, or None."""
        # not in a project: its .python-version and environment say nothing about ours
        found = self.run(["python", "find", "--no-project", "--system", version], cwd=Path(os.sep))
        return found.stdout.strip() or None if found.returncode == 0 else None


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` without those that lead an interpreter into another environment."""
    return {key: value for key, value in variables.items() if key not in _OF_OTHER_ENVIRONMENTS}


def _candidates() -> list[list[str]]:
    commands = []
    on_path = os.environ.get("UV") or shutil.which("uv")
    if on_path and shutil.which(on_path):
        commands.append([on_path])
    beside = Path(sys.executable).with_name("uv")
    if beside.exists():
        commands.append([str(beside)])
    if find_spec("uv") is not None:
        commands.append([sys.executable, "-m", "uv"])
    return commands
