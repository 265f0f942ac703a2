"""What goes wrong with the upstream alone, and what users get wrong."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import MODULES, Make

import llenvs
from llenvs import Action
from llenvs.core.errors import (
    InvalidOption,
    NotInstalled,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)
from llenvs.core.options import parse_options
from llenvs_verifiers.adapter import ADAPTER
from llenvs_verifiers.errors import UnsupportedEnvironment


def test_signal_handlers_and_exit_hooks_stay_as_they_are(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(number: int, frame: Any) -> None: ...

    before = signal.signal(signal.SIGTERM, handler), signal.signal(signal.SIGINT, handler)
    hooks: list[Any] = []
    monkeypatch.setattr(atexit, "register", lambda function, *args, **kwargs: hooks.append(function))
    try:
        make("vf_sums")
        assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGINT) is handler
        assert [hook for hook in hooks if hook.__module__.startswith("verifiers")] == []
        import vf_sums

        vf_sums.load_environment()  # whoever uses the upstream himself gets what it does
        assert signal.getsignal(signal.SIGTERM) is not handler
        assert len(hooks) == 1
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_environments_are_made_in_any_thread(make: Make) -> None:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(make("vf_sums")))
    thread.start()
    thread.join()
    assert made[0].step(made[0].reset(seed=0)[0], Action("x")).done


def test_loading_is_quiet(make: Make, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VF_STRANGE_LOADED", raising=False)
    root = logging.getLogger()
    before = list(root.handlers), root.level
    make("vf_strange", args={"kind": "loud"})
    out, err = capfd.readouterr()
    assert out == ""
    assert "loading ..." in err
    assert "Map" not in err  # no progress bars
    assert os.environ["VF_STRANGE_LOADED"] == "1"
    assert (list(root.handlers), root.level) == before
    from datasets.utils.logging import is_progress_bar_enabled

    assert is_progress_bar_enabled()  # as it was


def test_what_the_upstream_logs_is_the_hosts_to_show(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    env = make("vf_sums", args={"failing": True})
    with caplog.at_level(logging.ERROR):
        env.step(env.reset(seed=0)[0], Action("x"))
    assert "Error calling reward function broken: no such table" in caplog.text


def test_importing_the_adapter_imports_no_upstream() -> None:
    code = (
        "import sys, llenvs_verifiers; llenvs_verifiers.ADAPTER.list_environments();"
        "print([m for m in ('verifiers', 'datasets', 'openai', 'llenvs_verifiers.episode') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_names_at_hand() -> None:
    names = {info.name for info in ADAPTER.list_environments()}
    assert {"vf_sums", "vf_guess", "vf_mixed", "ReasoningGymEnv", "TextArenaEnv"} <= names
    assert "not_classic" not in names


def test_names_as_the_upstream_takes_them(make: Make) -> None:
    assert len(make("someone/vf-sums", size=2)) == 2
    path = make(f"{MODULES}/vf_sums.py", size=2)
    assert len(path) == 2
    assert path.spec.name == f"{MODULES}/vf_sums.py"


def test_wrong_names(make: Make) -> None:
    with pytest.raises(UnknownEnvironment, match=r"did you mean 'vf_sums'.*prime env install vf_sumz"):
        make("vf_sumz")
    with pytest.raises(UnknownEnvironment, match=r"did you mean '.*vf_sums.py'.*there is no file"):
        make(f"{MODULES}/vf_sumz.py")
    with pytest.raises(UnsupportedEnvironment, match="tasksets of v1 are for the adapter verifiers_v1"):
        make("not_classic")


def test_wrong_arguments(make: Make) -> None:
    with pytest.raises(UnknownOption, match=r"'num_task'; did you mean 'num_tasks'.*args of verifiers/vf_sums"):
        make("vf_sums", args={"num_task": 3})
    with pytest.raises(InvalidOption, match=r"verifiers/vf_strange: args\.kind: is needed"):
        make("vf_strange")
    with pytest.raises(UnknownOption, match="did you mean 'split'"):
        make("vf_sums", splitt="eval")
    with pytest.raises(InvalidOption, match="split"):
        make("vf_sums", split="dev")
    with pytest.raises(InvalidOption, match="SOME_KEY_OF_MINE"):
        make("vf_strange", args={"kind": "keys"})


def test_modules_that_fail_or_cannot_be_stepped(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UpstreamFailed, match=r"calling its load_environment: LookupError: no data here"):
        make("vf_strange", args={"kind": "raises"})
    with pytest.raises(UnsupportedEnvironment, match="gave NoneType, which is no verifiers Environment"):
        make("vf_strange", args={"kind": "none"})
    with pytest.raises(UnsupportedEnvironment, match="OwnLoop runs its rollouts in a loop of its own"):
        make("vf_strange", args={"kind": "own_loop"})
    with pytest.raises(UnsupportedEnvironment, match="SandboxEnv, whose episodes run in the vendor's cloud"):
        make("vf_strange", args={"kind": "cloud"})
    broken = tmp_path / "vf_broken_module.py"
    broken.write_text("def load_environment(): ...\nimport no_such_thing\n")
    with pytest.raises(UpstreamFailed, match=r"importing its module: ModuleNotFoundError: .*no_such_thing"):
        make(str(broken))


def test_failures_at_work_are_errors_and_no_scores(make: Make) -> None:
    env = make("vf_strange", args={"kind": "breaks"})
    state, _ = env.reset(seed=0)
    with pytest.raises(UpstreamFailed, match=r"taking the action 'x': KeyError: 'board'"):
        env.step(state, Action("x"))
    with pytest.raises(UpstreamFailed, match="InfraError: the box is gone"):
        env.step(state, Action("infra"))
    result = env.step(state, Action("invalid"))  # this is about the model
    assert (result.terminated, result.info["stop_condition"]) == (True, "has_error")
    assert result.info["error"] == "InvalidModelResponseError: no such move"
    assert env.step(state, Action("invalid")).rewards["yes"].reward == 0.0


def test_a_module_that_asks_the_policy_twice_says_so(make: Make) -> None:
    env = make("vf_strange", args={"kind": "asks"})
    with pytest.raises(UpstreamFailed, match="asked the policy's model for more than one reply in a turn"):
        env.step(env.reset(seed=0)[0], Action("x"))


def test_data_sets_that_are_built_when_needed(make: Make) -> None:
    env = make("vf_strange", args={"kind": "builder"})
    assert env.step(env.reset(seed=0)[0], Action("yes")).rewards["yes"].reward == 1.0


def test_without_the_upstream_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "verifiers" else real(name)
    )
    with pytest.raises(NotInstalled, match=r"pip install llenvs-verifiers \(in an environment without"):
        llenvs.make("verifiers/vf_sums")
    hidden = {"verifiers.legacy"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in hidden else real(name))
    with pytest.raises(NotInstalled, match=r"which has v1 alone; its adapter is verifiers_v1"):
        llenvs.make("verifiers/vf_sums")


def test_options_have_documentation() -> None:
    fields = ADAPTER.options.model_fields
    assert all(field.description for field in fields.values())
    assert parse_options(ADAPTER.options, {}).split == "eval"  # type: ignore[attr-defined]


def test_closing_tears_down(make: Make) -> None:
    env = llenvs.make("verifiers/vf_judged", args={"kind": "math"})
    env.step(env.reset(seed=0)[0], Action("1"))
    (rubric,) = [r for r in env.upstream.rubric.rubrics if type(r).__name__ == "MathRubric"]  # type: ignore[attr-defined]
    processes = list(rubric.executor._processes.values())
    assert processes[0].is_alive()
    env.close()
    assert not processes[0].is_alive()
    env.close()
