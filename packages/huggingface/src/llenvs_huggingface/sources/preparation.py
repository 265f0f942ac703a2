"""Loading through `datasets`: where the prepared copy goes, and what its errors mean for a user."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

from llenvs.core.errors import InvalidOption, LLEnvsError, UpstreamFailed, listed

T = TypeVar("T")

_scratch: list[str] = []


def prepared_folder(datasets: Any, source: str | None = None) -> str | None:
    """Where `datasets` writes its prepared copies: None for its own cache.

    Args:
        datasets: the module.
        source: a local directory. Its copy gets a folder of its own, named by its path and its files' names, sizes
            and times, since `datasets` takes two directories of one name for the same data, and a changed one for
            the old.

    Where the cache is read-only, a temporary folder stands in, which is deleted when this process ends.
    """
    cache = str(datasets.config.HF_DATASETS_CACHE)
    existing = cache
    while existing and not os.path.exists(existing):
        existing = os.path.dirname(existing)
    writable = os.access(existing or os.sep, os.W_OK | os.X_OK) and os.path.isdir(existing or os.sep)
    if not writable:
        if not _scratch:
            _scratch.append(tempfile.mkdtemp(prefix="llenvs-huggingface-"))
            atexit.register(_delete, _scratch[0], os.getpid())
        cache = _scratch[0]
    if source is not None:
        return os.path.join(cache, "llenvs", _state_of(source))
    return None if writable else cache


def _state_of(folder: str) -> str:
    said = hashlib.sha256(os.path.abspath(folder).encode())
    for path in files_below(folder):
        status = os.stat(path)
        said.update(f"\n{path} {status.st_size} {status.st_mtime_ns}".encode())
    return said.hexdigest()[:24]


def files_below(folder: str) -> list[str]:
    """The files of a directory at any depth, hidden ones and caches aside, sorted."""
    return sorted(
        os.path.join(inside, file)
        for inside, _, files in os.walk(folder)
        for file in files
        if not file.startswith((".", "cache-")) and os.sep + "." not in inside[len(folder) :]
    )


def _delete(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork, which ends earlier
        shutil.rmtree(folder, ignore_errors=True)


def loading(what: str, subset: str | None, split: str | None, load: Callable[[], T]) -> T:
    """`load()`, with what `datasets` raises as one of our errors.

    Raises:
        InvalidOption: the subset or split does not exist; names those that do.
        UpstreamFailed: anything else, with what was said.
    """
    try:
        return load()
    except LLEnvsError:
        raise
    except ValueError as error:
        raise explained(what, subset, split, error) from None
    except Exception as error:  # `datasets` raises errors of its file systems, of pyarrow and of its own
        if "scripts are no longer supported" in str(error):
            raise UpstreamFailed(what, "loading the data", _SCRIPT) from None
        raise UpstreamFailed(what, "loading the data", _chain(error)) from error


_SCRIPT = (
    "it is a Python script, which `datasets` no longer runs; many of them have a converted copy on the hub: "
    "revision='refs/convert/parquet', or a repository of someone who converted it"
)
_NAMES = re.compile(r"'([^']+)'")


def explained(what: str, subset: str | None, split: str | None, error: ValueError) -> LLEnvsError:
    """One of our errors for a ValueError of `datasets`: which of the two it is about, and what there is."""
    said = str(error)
    names = listed(dict.fromkeys(_NAMES.findall(said.partition("vailable")[2] or said.partition("among")[2])), 40)
    if "BuilderConfig" in said and "not found" in said:
        return InvalidOption("subset", subset, f"{what} has no such subset", valid=names)
    if "onfig name is missing" in said or "lease pick one" in said or "specify which configuration" in said:
        names = listed(dict.fromkeys(_NAMES.findall(said.split("Example")[0].split("\n\t")[0])), 80)
        if "multiple" in said:
            names = said.partition("in the cache: ")[2].partition("\n")[0]
        return InvalidOption("subset", subset, f"{what} has several, so one must be given", valid=names)
    if "Couldn't find cache" in said and "vailable configs" in said:
        return InvalidOption("subset", subset, f"{what} is prepared here without it", valid=names)
    if "nknown split" in said:
        names = listed(re.findall(r"[\w.-]+", said.rpartition("one of")[2]), 40)
        return InvalidOption("split", split, f"{what} has no such split", valid=names)
    if split is not None and ("nrecognized instruction" in said or "split" in said.lower()):
        return InvalidOption("split", split, f"{what}: {said}")
    return UpstreamFailed(what, "loading the data", error)


def _chain(error: BaseException) -> str:
    """What an error says, and what the errors behind it say that it does not."""
    said = f"{type(error).__name__}: {error}"
    cause = error.__cause__ or error.__context__
    while cause is not None:
        if str(cause) and str(cause) not in said:
            said += f" ({type(cause).__name__}: {cause})"
        cause = cause.__cause__ or cause.__context__
    return said[:1500]
