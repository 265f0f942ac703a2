"""The README's own lines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_readme() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    readme = Path(__file__).parents[1] / "README.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [" France is Paris.", "(4649, 314, 7042, 30, 2)"]
