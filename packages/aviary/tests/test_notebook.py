"""Notebooks with a kernel on this machine; skipped without llenvs-aviary[notebook] (600 MB)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from aviary_play import answers, begin, call, reward

from llenvs.core.errors import InvalidOption
from llenvs_aviary.environment import AviaryEnvironment

pytest.importorskip("aviary.envs.notebook", reason="needs llenvs-aviary[notebook]")
Make = Callable[..., AviaryEnvironment]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "c.csv"):
        (tmp_path / name).write_text("x\n1\n2\n")
    return tmp_path


def test_cells_run_and_branches_are_replayed_to(make: Make, folder: Path) -> None:
    env = make("notebook", work_dir=str(folder), use_docker=False, task="Sum the column x.")
    state = begin(env, 0)
    assert state.observation.task == "Sum the column x."
    assert state.observation.prompt.startswith(
        "Markdown representation of notebook contents (/workspace/notebook.ipynb)"
    )
    assert [tool.name for tool in env.available_tools] == ["edit_cell", "list_workdir"]
    code = (
        "total = sum(int(line) for line in open('a.csv').read().split()[1:])\n"
        "open('d.txt', 'w').write('x')\nprint(total * 7)"
    )
    first = env.step(state, call("edit_cell", contents=code))
    assert answers(first) == ["Appended new cell (#0)."]
    assert "21" in first.next_state.observation.prompt
    assert (reward(first), first.done) == (0.0, False)
    second = env.step(first.next_state, call("edit_cell", contents="total += 1\nprint('now', total)"))
    assert "now 4" in second.next_state.observation.prompt
    # from the state between: the kernel of the branch knows nothing of the second cell
    branch = env.step(first.next_state, call("edit_cell", contents="print('then', total)"))
    assert "then 3" in branch.next_state.observation.prompt
    assert env.stats.replayed == 1
    listed = env.step(branch.next_state, call("list_workdir"))
    assert answers(listed)[0].split() == [
        *("{", '"files":', "[", '"a.csv",', '"b.csv",', '"c.csv",', '"d.txt",'),
        *('"notebook.ipynb",', '"notebook.md"', "]", "}"),
    ]
    assert sorted(os.listdir(folder)) == ["a.csv", "b.csv", "c.csv"]  # the episodes had copies


def test_an_error_in_a_cell_is_shown(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    env = make("notebook", use_docker=False)
    result = env.step(begin(env, 0), call("edit_cell", contents="1/0"))
    assert "ZeroDivisionError" in result.next_state.observation.prompt
    assert not result.done
    assert capfd.readouterr() == ("", "")  # neither the kernel nor the upstream's log


def test_pictures_are_shown(make: Make) -> None:
    env = make("notebook", use_docker=False)
    code = (
        "import base64\nfrom IPython.display import Image, display\n"
        "display(Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"
        "YAAAAAYAAjCB0C8AAAAASUVORK5CYII=')))"
    )
    result = env.step(begin(env, 0), call("edit_cell", contents=code))
    (image,) = result.next_state.observation.images
    assert (image.data or b"")[1:4] == b"PNG"


def test_a_folder_that_is_none(make: Make) -> None:
    with pytest.raises(InvalidOption, match=r"work_dir: is no folder"):
        make("notebook", work_dir="nowhere", use_docker=False)
