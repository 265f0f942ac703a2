"""The command as a process of its own, with the toy adapter installed beside the real ones."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from llenvs_cli.main import app

TOYS = str(Path(__file__).parent / "toys")

Llenvs = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment_variables() -> dict[str, str]:
    """The variables of a process that finds the toy adapter."""
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "LLENVS_DEBUG")}
    return {**kept, "PYTHONPATH": TOYS, "TERM": "xterm-256color"}


@pytest.fixture
def llenvs(environment_variables: dict[str, str], tmp_path: Path) -> Llenvs:
    """Runs ``llenvs ARGUMENTS`` in `tmp_path` and gives exit status, stdout and stderr."""

    def run(*arguments: str, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "llenvs_cli", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**environment_variables, **variables},
            timeout=120,
        )

    return run


@pytest.fixture
def quick(toys_in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Llenvs:
    """The same as `llenvs` inside this process: for the many cases in which a process of its own shows no more."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
        done = CliRunner().invoke(app, list(arguments), input=stdin, env=variables, prog_name="llenvs")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(list(arguments), done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def toys_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the toy adapter findable in this process, for tests with typer's runner."""
    from llenvs.core.registry import environment_registry

    monkeypatch.syspath_prepend(TOYS)
    monkeypatch.setattr(environment_registry, "_loaded", {})
    for name in ("COLUMNS", "NO_COLOR", "LLENVS_DEBUG"):
        monkeypatch.delenv(name, raising=False)
