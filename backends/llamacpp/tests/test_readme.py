"""The README's examples run and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_examples(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLENVS_MODEL", str(model_path))
    examples = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    for example in examples:
        exec(compile(example, str(README), "exec"), {"__name__": "example"})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [" France is Paris.", "(4649, 314, 7042, 30, 2)"]
    assert lines[-1] == "add {'a': 2, 'b': 40}"
