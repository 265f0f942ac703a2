"""The README's snippet runs, and prints what it says."""

import re
from pathlib import Path

import pytest


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own text
    assert capsys.readouterr().out.splitlines() == ["yusuf_rossi_9620", "1.0", "0.0"]
    assert "# yusuf_rossi_9620" in snippet
    assert "# 1.0, then 0.0" in snippet
