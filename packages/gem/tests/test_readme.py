import re
from pathlib import Path

import pytest


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own text
    said, *values = capsys.readouterr().out.splitlines()
    assert said.endswith("the target number is higher than 25.")
    assert values == ["1.0", "-0.1", "Code execution result: 36", "1.0"]
    for value in values:
        assert f"# {value}" in snippet
