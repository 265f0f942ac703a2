import re
from pathlib import Path

import pytest


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own text
    *_, right, near = capsys.readouterr().out.splitlines()
    assert (right, near) == ("1.0 1.0", "0.6 0.0")
    assert f"# {right}" in snippet
    assert f"# {near}" in snippet
