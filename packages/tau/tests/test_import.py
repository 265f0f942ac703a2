"""What importing the upstream does to a process: nothing that is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import llenvs
from llenvs.core.errors import NotInstalled, UnknownEnvironment
from llenvs_tau.adapter import ADAPTER
from llenvs_tau.upstream import WrongPackage, require_upstream

PROGRAM = """
import logging, os, signal, socket, sys, warnings

def refuse(*arguments, **options):
    raise AssertionError(f"network: {arguments[1:]}")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse

import llenvs, llenvs_tau
assert llenvs_tau.ADAPTER.list_environments() and llenvs.environment_registry.describe("tau/airline")
assert not {"tau2", "litellm", "pandas"} & set(sys.modules)

import litellm
warnings.simplefilter("error")
litellm.drop_params, litellm.cache = False, "mine"
litellm.success_callback.append("cache")
before = dict(os.environ), list(logging.root.handlers), logging.root.level, signal.getsignal(signal.SIGINT)
with llenvs.make("tau/mock", user_script=["Hi"]) as env:
    env.step(env.reset(seed=1)[0], llenvs.Action("Hello"))
assert "tau2" in sys.modules
after = dict(os.environ), list(logging.root.handlers), logging.root.level, signal.getsignal(signal.SIGINT)
assert after == before
assert (litellm.drop_params, litellm.cache, litellm.success_callback) == (False, "mine", ["cache"])
"""


def test_the_import_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LLM_CACHE_ENABLED=true\nCACHE_TYPE=nonsense\nMY_SECRET=leaked\n")
    environment = os.environ | {
        "LLM_CACHE_ENABLED": "1",
        "CACHE_TYPE": "nonsense",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env"]


def test_another_project_of_the_name_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").write_text("raise AssertionError('imported')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tau2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(WrongPackage, match=r'pip uninstall tau2, then: pip install "llenvs\[tau\]"'):
        require_upstream()
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[tau\]"'):
        require_upstream()
    assert len(ADAPTER.list_environments()) == 17


def test_names() -> None:
    names = [info.name for info in ADAPTER.list_environments()]
    assert names[:5] == ["mock", "airline", "airline:train", "airline:test", "retail"]
    with pytest.raises(UnknownEnvironment, match="did you mean 'airline'"):
        llenvs.make("tau/airlines")
    with pytest.raises(UnknownEnvironment, match="splits of the domain"):
        llenvs.make("tau/airline:dev")
    with pytest.raises(UnknownEnvironment):
        llenvs.make("tau/banking_knowledge")
    assert llenvs.environment_registry.get(name="telecom:small", adapter="tau", user="solo").num_tasks == 20
