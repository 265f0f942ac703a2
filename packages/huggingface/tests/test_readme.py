import re
from pathlib import Path

import pytest


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own text
    said = capsys.readouterr().out.splitlines()
    assert said == re.findall(r"# -> (.*)", snippet)
