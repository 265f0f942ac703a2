import re
from pathlib import Path

import pytest


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own text
    prompt, tools, told, cast = capsys.readouterr().out.splitlines()
    assert (prompt, told, cast) == ("Write a 5 word story via print_story about frogs", "1.0 True", "5")
    assert "print_story" in tools
    for said in (prompt, told, cast):
        assert f"# {said}" in snippet
