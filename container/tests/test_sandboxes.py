"""Sandboxes, made by the real uv: two creators, a killed one, one in use, and what cannot be made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from llenvs.container import sandboxes
from llenvs.container.cleanup import find_leaks, remove_leaks
from llenvs.container.sandbox_plan import Part, SandboxPlan, editable_folder, plan_sandbox
from llenvs.container.sandboxes import (
    CACHE_VARIABLE,
    UnknownSandbox,
    create_sandbox,
    incomplete_sandboxes,
    list_sandboxes,
    open_sandbox,
    remove_sandboxes,
    sandbox_root,
)
from llenvs.core.errors import ContainerFailed, InvalidOption, UnknownAdapter

sys.path.insert(0, str(Path(__file__).parent))
from life import eventually

sys.path.pop(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def small_plan(name: str = "small-0123", **fields) -> SandboxPlan:
    """One small distribution, which installs quickly."""
    part = Part("packaging", None, "packaging")
    values = {"adapter": "small", "parts": (part,), "packages": (), "python": None, "workspace": None}
    return SandboxPlan(**{**values, "name": name, **fields})


MAKE = """
import sys
from test_sandboxes import small_plan
from llenvs.container.sandboxes import create_sandbox
print(create_sandbox(small_plan()).created)
"""


def make_in_another_process() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MAKE],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_made_once_and_opened_afterwards(cache):
    lines: list[str] = []
    made = create_sandbox(small_plan(), notice=lines.append)
    assert made.path == cache / "sandboxes" / "small-0123"
    assert lines[0].startswith("making the sandbox small-0123 once: packaging")
    assert lines[-1].startswith("the sandbox small-0123 is ready (Python 3.")
    assert [line.partition("==")[0] for line in made.contents] == ["packaging"]
    version = subprocess.run(
        [made.interpreter, "-c", "import sys, packaging; print('%d.%d.%d' % sys.version_info[:3])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == made.python

    del lines[:]
    again = create_sandbox(small_plan(), notice=lines.append)
    assert again == made  # with the moment when it was made
    assert lines == []
    assert list_sandboxes() == [made]
    assert 1e5 < made.size < 1e8


def test_two_creators_make_one(cache):
    first, second = make_in_another_process(), make_in_another_process()
    outputs = [each.communicate(timeout=240) for each in (first, second)]
    assert [each.returncode for each in (first, second)] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    notices = "".join(stderr for _, stderr in outputs)
    assert notices.count("making the sandbox") == 1
    assert len(list_sandboxes()) == 1


def test_a_creator_that_was_killed_leaves_nothing_that_counts(cache):
    creator = make_in_another_process()
    path = sandbox_root() / "small-0123"
    eventually(path.exists, "the creator is at work", seconds=60)
    os.kill(creator.pid, signal.SIGKILL)
    creator.communicate()
    assert list_sandboxes() == []

    # uv may still be writing: it holds the lock, so that nobody takes the folder for abandoned before it ends
    eventually(lambda: incomplete_sandboxes() == [path], "uv has ended", seconds=60)
    leaks = find_leaks()
    assert leaks.sandboxes == (path,)
    assert "1 unfinished sandbox" in str(leaks)

    lines: list[str] = []
    made = create_sandbox(small_plan(), notice=lines.append)
    assert lines[0].startswith("making")
    assert made.interpreter.exists()
    assert incomplete_sandboxes() == []


def test_the_clean_up_removes_unfinished_ones_and_keeps_the_others(cache):
    made = create_sandbox(small_plan(), notice=lambda line: None)
    unfinished = sandbox_root() / "small-dead"
    unfinished.mkdir()
    remove_leaks(find_leaks())
    assert not unfinished.exists()
    assert list_sandboxes() == [made]


def test_one_whose_python_is_gone_is_made_anew(cache):
    made = create_sandbox(small_plan(), notice=lambda line: None)
    made.interpreter.unlink()
    made.interpreter.symlink_to("/nowhere/python3")
    assert list_sandboxes() == []
    again = create_sandbox(small_plan(), notice=lambda line: None)
    assert again.created > made.created
    assert again.interpreter.exists()


def test_one_in_use_is_not_removed(cache):
    with open_sandbox(small_plan(), notice=lambda line: None) as (sandbox, _):
        with open_sandbox(small_plan()) as (same, _):
            assert same == sandbox
        with pytest.raises(ContainerFailed, match="small-0123 is in use"):
            remove_sandboxes("small")
        assert sandbox.interpreter.exists()
    assert remove_sandboxes("small") == ["small-0123"]
    assert list(sandbox_root().iterdir()) == []


def test_removing_what_is_not_there_names_what_is(cache):
    create_sandbox(small_plan(), notice=lambda line: None)
    with pytest.raises(UnknownSandbox, match="unknown sandbox 'smal'; did you mean 'small'"):
        remove_sandboxes("smal")


def test_a_python_that_is_not_here_is_named_with_how_to_get_it(cache):
    with pytest.raises(ContainerFailed, match=r"no Python 3\.99 .*uv python install 3\.99"):
        create_sandbox(small_plan(python="3.99"))
    assert list_sandboxes() == []


def test_no_uv_is_named_with_how_to_get_it(cache, monkeypatch):
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(ContainerFailed, match="run: pip install uv"):
        create_sandbox(small_plan())


def test_what_cannot_be_installed_is_an_error_with_what_uv_said(cache):
    packages = ("packaging==0.0.1.dev999",)
    with pytest.raises(ContainerFailed, match="'small' could not be made: uv pip install failed") as failed:
        create_sandbox(small_plan(packages=packages), notice=lambda line: None)
    assert "packaging==0.0.1.dev999" in failed.value.log_tail
    assert [path for path in sandbox_root().iterdir() if path.is_dir()] == []


def test_plan_holds_the_server_and_the_adapter_from_where_they_are_installed():
    plan = plan_sandbox("reasoning-gym", packages=["reasoning-gym==0.1.23"])
    assert plan.adapter == "reasoning_gym"
    assert [part.name for part in plan.parts] == ["llenvs-core", "llenvs-container", "llenvs-reasoning-gym"]
    for part in plan.parts:
        folder = editable_folder(distribution(part.name))
        assert part.folder == folder
        assert part.requirement == f"{part.name}=={distribution(part.name).version}"
        assert part.arguments == ([part.requirement] if folder is None else ["--editable", str(folder)])
    assert plan.overrides == ["reasoning-gym==0.1.23"]


def test_plan_holds_the_extras_that_the_adapters_extra_of_llenvs_asks_for():
    assert plan_sandbox("huggingface").parts[-1].extras == ("math",)
    assert "llenvs-aviary[gsm8k,hotpotqa]" in str(plan_sandbox("aviary").parts[-1])
    assert plan_sandbox("aviary").parts[-1].arguments[-1].endswith("aviary[gsm8k,hotpotqa]")


def test_name_of_a_plan_changes_with_what_is_in_it_and_with_nothing_else():
    plan = plan_sandbox("reasoning_gym")
    assert plan.name.startswith("reasoning_gym-")
    assert plan_sandbox("reasoning-gym").name == plan.name
    others = [
        plan_sandbox("reasoning_gym", packages=["reasoning-gym==0.1.23"]).name,
        plan_sandbox("reasoning_gym", packages=["reasoning-gym==0.1.24"]).name,
        plan_sandbox("reasoning_gym", python="3.13").name,
    ]
    assert len({plan.name, *others}) == 4


@pytest.mark.parametrize("package", ["", " ", "--index-url=x", "-e ."])
def test_packages_are_requirements_and_no_options_of_uv(package):
    with pytest.raises(InvalidOption, match=r"container\.packages\.0: is no requirement"):
        plan_sandbox("reasoning_gym", packages=[package])


def test_unknown_adapter_is_named_with_the_nearest():
    with pytest.raises(UnknownAdapter, match="did you mean 'reasoning_gym'"):
        plan_sandbox("reasoning_gims")


def test_root_follows_the_environment_variable(cache, monkeypatch):
    assert sandboxes.sandbox_root() == cache / "sandboxes"
    monkeypatch.delenv(CACHE_VARIABLE)
    assert sandboxes.sandbox_root().parts[-2:] == ("llenvs", "sandboxes")
