"""The user's process: nothing imported early, no setting of JAX changed, nothing printed, no file in its way."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from craftax_play import Make

from llenvs.core.errors import NotInstalled
from llenvs_craftax import ADAPTER
from llenvs_craftax.cache_folder import cache_folder
from llenvs_craftax.textures import _read, _write


def test_importing_and_listing_imports_no_upstream() -> None:
    code = (
        "import sys, llenvs, llenvs_craftax; llenvs_craftax.ADAPTER.list_environments(); "
        "llenvs.make('craftax/craftax-classic'); "
        "print([m for m in ('jax', 'craftax', 'flax', 'PIL', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_a_process_of_its_own(tmp_path: Path) -> None:
    """Settings of JAX that would make other worlds, and stay as they are; one line in the log; no file here."""
    code = """
import os, sys
import jax
jax.config.update("jax_threefry_partitionable", False)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_prng_impl", "rbg")
def settings():
    names = ("jax_threefry_partitionable", "jax_enable_x64", "jax_default_prng_impl", "jax_compilation_cache_dir",
             "jax_persistent_cache_min_compile_time_secs", "jax_default_device", "jax_platforms")
    return {name: getattr(jax.config, name) for name in names}
before = settings()
import llenvs
env = llenvs.make("craftax/craftax-classic")
env.warmup()
state, _ = env.reset(seed=0)
print(env.arrays(state)["map"].sum(), settings() == before, os.listdir("."))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=250, cwd=tmp_path
    )
    assert done.stdout.split("\n") == ["19288 True []", ""]
    assert done.stderr.count("compiling Craftax (classic)") == 1


def test_compiled_programs_are_kept_in_our_folder(make: Make) -> None:
    make("craftax-classic").warmup()
    folder = cache_folder("compiled")
    assert folder is not None
    assert any("step" in file.name for file in folder.iterdir())


def test_the_folder_can_be_moved_or_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLENVS_CRAFTAX_CACHE", str(tmp_path))
    assert cache_folder("textures") == tmp_path / "textures"
    monkeypatch.setenv("LLENVS_CRAFTAX_CACHE", "")
    assert cache_folder("textures") is None
    monkeypatch.delenv("LLENVS_CRAFTAX_CACHE")
    found = cache_folder("textures")
    assert found is not None
    assert found.parts[-2:] == ("craftax", "textures")


def test_textures_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "textures.npz"
    textures = {
        "a": np.arange(6).reshape(2, 3),
        "players": [np.zeros((2, 2), np.int32), np.ones((2, 2), np.int32)],
    }
    assert _read(path) is None
    _write(path, textures)
    assert os.listdir(path.parent) == ["textures.npz"]
    kept = _read(path)
    assert kept is not None
    assert kept["a"].tobytes() == textures["a"].tobytes()
    assert [p.sum() for p in kept["players"]] == [0, 4]
    path.write_bytes(path.read_bytes()[:100])
    assert _read(path) is None
    _write(tmp_path / "deep" / "textures.npz" / "below", textures)  # no folder there, and no failure


def test_without_the_upstream_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [n for n in sys.modules if n.partition(".")[0] == "craftax"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[craftax\]"'):
        ADAPTER.create("craftax", ADAPTER.options_for("craftax")())


def test_the_log_says_once_that_it_compiles(caplog: pytest.LogCaptureFixture) -> None:
    from llenvs_craftax import compilation

    said = set(compilation._announced)
    compilation._announced.clear()
    with caplog.at_level(logging.WARNING, logger="llenvs_craftax"):
        compilation.announce("full")
        compilation.announce("full")
    compilation._announced.update(said)
    assert [record.message for record in caplog.records] == [
        "compiling Craftax (full) for this process: up to a minute the first time, less later"
    ]
