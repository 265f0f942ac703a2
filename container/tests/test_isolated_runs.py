"""One configuration over environments in different places."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from test_runtime_venv import OLDER, config  # noqa: F401 - the sandbox with an older upstream

from llenvs.container import ContainerConfig
from llenvs.evaluation import ConfigError, load_config, prepare_run, read_trajectories, run_config

MODEL = {"backend": "scripted", "script": "<answer>100</answer>"}
HERE = {"name": "leg_counting", "adapter": "reasoning_gym", "size": 6}


def test_conflicting_releases_in_one_run(config: ContainerConfig, tmp_path: Path) -> None:  # noqa: F811
    older = {
        **HERE,
        "label": "older",
        "container": {"runtime": "venv", "python": config.python, "packages": [f"reasoning-gym=={OLDER}"]},
    }
    run = {"environments": [HERE, older], "model": MODEL, "output_dir": str(tmp_path / "run"), "log": []}
    result = run_config(run)
    assert {label: (r.num_done, r.num_errors) for label, r in result.environments.items()} == {
        "reasoning_gym/leg_counting": (6, 0),
        "older": (6, 0),
    }
    records = list(read_trajectories(tmp_path / "run"))
    rewards = {(r["environment"], r["task_index"]): r["reward"] for r in records}
    assert len(rewards) == 12
    # the task of index 0 has the answer 100 in both releases
    assert rewards["reasoning_gym/leg_counting", 0] == rewards["older", 0] == 1.0
    assert f'"reasoning_gym": "{OLDER}"' in (tmp_path / "run" / "config.json").read_text()
    (session,) = json.loads((tmp_path / "run" / "versions.json").read_text())
    assert session["distributions"]["reasoning-gym"] == version("reasoning-gym") != OLDER
    (there,) = session["isolated"]
    assert there["environment"] == "reasoning_gym/leg_counting"
    assert there["python"].startswith(f"{config.python}.")
    assert there["distributions"]["reasoning-gym"] == OLDER
    assert there["distributions"]["llenvs-reasoning-gym"] == version("llenvs-reasoning-gym")


def test_isolation_of_a_whole_run() -> None:
    run = {"environments": [HERE], "model": MODEL, "isolation": "process", "log": []}
    with prepare_run(load_config(run)) as prepared:
        assert type(prepared.environments[0].environment).__name__ == "ContainerEnvironment"
    # what is installed here stays in this process
    with prepare_run(load_config({**run, "isolation": "auto"})) as prepared:
        assert type(prepared.environments[0].environment).__name__ == "ReasoningGymEnvironment"


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"container": "proces"}, "environments[0].container", "'process'"),
        ({"container": {"runtime": "venv", "pakages": []}}, "environments[0].container", "packages"),
        ({"container": {"runtime": "docker"}}, "environments[0].container", "needs image"),
        ({"container": "process", "siez": 3}, "environments[0].siez", "size"),
    ],
)
def test_wrong_places_are_named(change: dict[str, object], key: str, words: str) -> None:
    run = {"environments": [{**HERE, **change}], "model": MODEL, "log": []}
    with pytest.raises(ConfigError) as caught:
        run_config(run)
    assert key in str(caught.value)
    assert words in str(caught.value)


def test_a_wrong_isolation_is_named() -> None:
    with pytest.raises(ConfigError, match=r"isolation.*'none', 'auto', 'process' or 'venv'"):
        load_config({"environments": [HERE], "model": MODEL, "isolation": "atuo"})
