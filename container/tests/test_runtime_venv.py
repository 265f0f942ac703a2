"""Runtime "venv": another Python and a conflicting dependency beside those of this environment."""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from llenvs import make
from llenvs.container import ContainerConfig, create_container_environment
from llenvs.container.python_choice import VERSIONS
from llenvs.container.sandbox_plan import plan_sandbox
from llenvs.container.sandboxes import CACHE_VARIABLE, create_sandbox, list_sandboxes, remove_sandboxes
from llenvs.container.uv import Uv
from llenvs.core import Action
from llenvs.core.errors import ContainerFailed, InvalidOption

sys.path.insert(0, str(Path(__file__).parent))
from life import run_directories

sys.path.pop(0)

OLDER = "0.1.23"
LEG_COUNTING = {"name": "leg_counting", "adapter": "reasoning_gym", "size": 20}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> ContainerConfig:
    """A sandbox with an older upstream and, where this machine has one, another Python than ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        uv = Uv()
        other = next((v for v in VERSIONS if v != ours and uv.find_python(v) is not None), ours)
        config = ContainerConfig(runtime="venv", python=other, packages=(f"reasoning-gym=={OLDER}",))
        create_sandbox(plan_sandbox("reasoning_gym", python=config.python, packages=config.packages))
        yield config


def test_two_releases_of_one_library_side_by_side(config):
    here = make("reasoning_gym/leg_counting", size=20)
    there = create_container_environment(LEG_COUNTING, config)
    try:
        assert here.spec.metadata["reasoning_gym"] == version("reasoning-gym") != OLDER
        assert there.spec.metadata["reasoning_gym"] == OLDER
        (sandbox,) = list_sandboxes()
        assert f"reasoning-gym=={OLDER}" in sandbox.contents
        assert sandbox.python.startswith(f"{config.python}.")
        # both releases make the same tasks of leg_counting, so the answer of one is right in the other
        for index in (0, 7):
            ours, _ = here.reset(options={"task_index": index})
            theirs, _ = there.reset(options={"task_index": index})
            assert theirs.observation.prompt == ours.observation.prompt
            assert theirs.hidden == ours.hidden
            answer = ours.hidden["entry"]["answer"]
            assert there.step(theirs, Action(f"<answer>{answer}</answer>")).rewards.total == 1.0
            assert there.step(theirs, Action("<answer>-1</answer>")).rewards.total < 1.0
    finally:
        there.close()
        here.close()


def test_the_second_start_makes_nothing(config, capfd):
    (before,) = list_sandboxes()
    env = create_container_environment(LEG_COUNTING, config)
    try:
        assert capfd.readouterr().err == ""
        assert list_sandboxes() == [before]
        with pytest.raises(ContainerFailed, match="is in use"):
            remove_sandboxes("reasoning_gym")
    finally:
        env.close()


def test_variables_of_our_environment_do_not_lead_the_server_astray(config, monkeypatch, tmp_path_factory):
    place = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("PYTHONPATH", str(Path(make.__code__.co_filename).parent / "nowhere"))
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    env = create_container_environment(LEG_COUNTING, config)
    env.close()
    assert env.spec.metadata["reasoning_gym"] == OLDER
    assert run_directories(place) == []


def test_the_adapter_must_be_named():
    with pytest.raises(InvalidOption, match="adapter: must be given for runtime 'venv'"):
        create_container_environment({"name": "leg_counting"}, ContainerConfig(runtime="venv"))
