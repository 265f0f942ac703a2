"""Every Python snippet of every README runs as it stands, and so does every `llenvs` command."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = sorted(
    p
    for p in ROOT.glob("**/*.md")
    if not {".venv", ".nox", "node_modules", "site"} & set(p.relative_to(ROOT).parts)
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for path in READMES:
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] == language:
                line = text[: match.start()].count("\n") + 1
                found.append((f"{path.relative_to(ROOT)}:{line}", match[2]))
    return found


PYTHON = _blocks("python")
ENGINES = {"llenvs_transformers": "torch", "llenvs_vllm": "vllm"}
"""Backends whose engine is too large for every environment: module -> engine. Their own tests run these."""
INSTALLED = {distribution.name for distribution in importlib.metadata.distributions()}
KEY = re.compile(r"# the key is in (\w+)")
"""How a snippet says that it asks a service for money."""
COMMANDS = [
    (where, line.strip())
    for where, block in _blocks("bash")
    for line in block.splitlines()
    if line.strip().startswith("llenvs ")
]


def _run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, input="", timeout=280)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the root of the checkout, where a snippet may write."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_there_are_snippets() -> None:
    assert len(PYTHON) >= 8
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize(("where", "code"), PYTHON, ids=[w for w, _ in PYTHON])
def test_python_snippet(where: str, code: str, checkout: Path) -> None:
    if where.startswith("packages/"):
        distribution = f"llenvs-{where.split('/')[1]}"
        if distribution not in INSTALLED:
            pytest.skip(f"{distribution} is not installed here; the session of its tests runs this")
    for module, engine in ENGINES.items():
        if module in code and importlib.util.find_spec(engine) is None:
            pytest.skip(f"{engine} is not installed")
    key = KEY.search(code)
    if key is not None and key[1] not in os.environ:
        pytest.skip(f"asks a service, and {key[1]} is not set")
    if 'runtime="docker"' in code and "LLENVS_REQUIRE_ENGINE" not in os.environ:
        pytest.skip("needs a container engine and its image; container/images/with_engine.sh brings both")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)  # of the snippet, not of what it imports
        compile(code, where, "exec")
    done = _run([sys.executable, "-c", code], checkout)
    assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(("where", "command"), COMMANDS, ids=[f"{w}-{c}" for w, c in COMMANDS])
def test_command(where: str, command: str, checkout: Path) -> None:
    words = shlex.split(command, comments=True)
    done = _run([str(Path(sys.executable).with_name("llenvs")), *words[1:]], checkout)
    assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"
