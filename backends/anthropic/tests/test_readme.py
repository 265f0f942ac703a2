"""The README's example with a server of one's own runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    _, example = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("No. Usage(prompt_tokens=43")
