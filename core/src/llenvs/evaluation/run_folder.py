"""A run as a folder: nothing that was paid for is lost.

==========================  ===========================================================================
``config.json``             the resolved configuration, without secrets
``versions.json``           one entry per session: time, Python, platform, distributions
``trajectories.jsonl``      one record a line, written as trajectories end (`llenvs.evaluation.record`)
``retried.jsonl``           records of errors that a resumed run tried again
``summary.json``            the figures, written when the run ends or is stopped
``events.jsonl``            what the file logger heard, if there is one
==========================  ===========================================================================
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.evaluation.folder_lock import FolderLock
from llenvs.evaluation.record import Outcome, dump_line, plain
from llenvs.evaluation.versions import run_versions

CONFIG, VERSIONS, TRAJECTORIES = "config.json", "versions.json", "trajectories.jsonl"
RETRIED, SUMMARY, EVENTS = "retried.jsonl", "summary.json", "events.jsonl"

FORMAT = 1
"""Version of the layout."""

# How much is run and how, but not what: a resumed run may change these.
_FREE_FIELDS = frozenset(
    (
        "num_tasks",
        "task_indices",
        "repeats",
        "batch_size",
        "log",
        "output_dir",
        "save_states",
        "retry_errors",
        "max_errors",
        "trajectory_timeout",
    )
)
_FREE_MODEL_OPTIONS = frozenset(
    ("api_key", "max_concurrency", "timeout", "retry", "threads", "slots", "organization")
)


class RunFolderError(LLEnvsError):
    """A run folder that cannot be used: taken, of another run, damaged, or not writable."""


class RunFolder:
    """The folder of one run, locked while it is open. Make it with `open`."""

    def __init__(self, path: Path, lock: FolderLock) -> None:
        self.path = path
        self._lock = lock
        self._trajectories = path / TRAJECTORIES
        self._file: Any = None

    @classmethod
    def open(
        cls, path: str | Path, config: Mapping[str, Any], versions: Mapping[str, Any], *, resume: bool
    ) -> Self:
        """Make the folder, or go on with what it holds.

        Args:
            path: of the folder.
            config: resolved configuration as JSON data.
            versions: of this session (`llenvs.evaluation.versions`).
            resume: False refuses a folder that already holds a run.

        Raises:
            RunFolderError: another run has it, it holds a run of another configuration (the differing field is
                named), it holds a run and `resume` is False, or it cannot be written.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FolderLock(folder)
            holder = lock.acquire()
        except OSError as error:
            raise RunFolderError(f"{folder}: cannot be used as output_dir: {error.strerror or error}") from None
        if holder is not None:
            raise RunFolderError(
                f"{folder}: another run is writing there (process {holder or 'unknown'}); "
                "wait for it or choose another output_dir"
            )
        self = cls(folder, lock)
        try:
            self._begin({"format": FORMAT, **config}, versions, resume)
        except OSError as error:
            self.close()
            raise RunFolderError(f"{folder}: cannot be written: {error.strerror or error}") from None
        except BaseException:
            self.close()
            raise
        return self

    def _begin(self, config: Mapping[str, Any], versions: Mapping[str, Any], resume: bool) -> None:
        earlier = _read_json(self.path / CONFIG, dict)
        sessions: list[Any] = []
        _drop_half_line(self._trajectories)
        holds_records = self._trajectories.exists() and self._trajectories.stat().st_size > 0
        if earlier is None and holds_records:
            raise RunFolderError(
                f"{self.path}: has a {TRAJECTORIES} but no {CONFIG}, so it is unknown what made it; "
                "choose another output_dir"
            )
        # a run that stopped before its first trajectory (no key, a dead server) binds nobody to its configuration
        if earlier is not None and holds_records:
            if not resume:
                raise RunFolderError(
                    f"{self.path}: already holds a run; choose another output_dir, or resume it (resume=True)"
                )
            different = first_difference(earlier, config)
            if different is not None:
                field, there, here = different
                raise RunFolderError(
                    f"{self.path}: holds a run of another configuration: {field} is {_shown(there)} there and "
                    f"{_shown(here)} here; choose another output_dir"
                )
            sessions = _read_json(self.path / VERSIONS, list) or []
        write_json(self.path / CONFIG, config)
        write_json(self.path / VERSIONS, [*sessions, versions])

    def outcomes(self, *, retry: Callable[[Outcome], bool] = lambda outcome: False) -> Iterator[Outcome]:
        """What the folder already holds, one trajectory at a time.

        Those for which `retry` is true are left out and moved to ``retried.jsonl`` once all are read. To be
        read to the end before the first `append`.

        Raises:
            RunFolderError: a line is damaged.
        """
        if not self._trajectories.exists():
            return
        again = []
        for number, record in _records(self._trajectories):
            try:
                outcome = Outcome.from_record(record)
            except (KeyError, TypeError, ValueError) as error:
                raise _damaged(self._trajectories, number, f"{type(error).__name__}: {error}") from None
            if retry(outcome):
                again.append(number)
            else:
                yield outcome
        if again:
            self._move_to_retried(frozenset(again))

    def _move_to_retried(self, numbers: frozenset[int]) -> None:
        # First the copy, then the atomic replacement: whenever this is cut off, no record is lost.
        kept = self._trajectories.with_suffix(".tmp")
        _drop_half_line(self.path / RETRIED)
        with (
            open(self._trajectories, "rb") as source,
            open(self.path / RETRIED, "ab") as retried,
            open(kept, "wb") as target,
        ):
            for number, line in enumerate(source, start=1):
                (retried if number in numbers else target).write(line)
            for file in (retried, target):
                file.flush()
                os.fsync(file.fileno())
        os.replace(kept, self._trajectories)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; when this returns, the death of this process cannot lose it.

        Raises:
            RunFolderError: the disk is full, or the folder is gone.
        """
        try:
            if self._file is None:
                self._file = open(self._trajectories, "ab", buffering=0)  # noqa: SIM115 - open for the run
            line = memoryview(dump_line(record))
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise RunFolderError(f"{self._trajectories}: cannot be written: {error.strerror or error}") from None

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace ``summary.json`` in one step."""
        try:
            write_json(self.path / SUMMARY, summary)
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Let go of the folder; twice is fine."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()


def open_run_folder(
    output_dir: str | Path | None, config: Mapping[str, Any], made_with: Iterable[object], *, resume: bool
) -> RunFolder | None:
    """The folder for a run of `config`, the versions of what it is `made_with` noted; None without a place."""
    if output_dir is None:
        return None
    return RunFolder.open(output_dir, plain(config), run_versions(made_with), resume=resume)


def read_trajectories(output_dir: str | Path | None) -> Iterator[dict[str, Any]]:
    """The records of a run folder in the order they ended, one at a time; a half-written last line is left out.

    Raises:
        InvalidOption: there is no such folder, or no run in it.
        RunFolderError: a line is damaged.
    """
    if output_dir is None:
        raise InvalidOption("output_dir", None, "the run had no folder, so its trajectories were not kept")
    path = Path(output_dir) / TRAJECTORIES
    if not path.exists():
        raise InvalidOption("output_dir", str(output_dir), f"has no {TRAJECTORIES}")
    return (record for _, record in _records(path))


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError as error:
                raise _damaged(path, number, str(error)) from None
            if not isinstance(record, dict):
                raise _damaged(path, number, "no object")
            yield number, record


def _damaged(path: Path, number: int, problem: str) -> RunFolderError:
    return RunFolderError(
        f"{path}: line {number} is damaged ({problem}); remove that line to run its trajectory again"
    )


def _drop_half_line(path: Path) -> None:
    """Cut off what a killed process left after the last line feed."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        position = end
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            found = file.read(position - start).rfind(b"\n")
            if found >= 0:
                position = start + found + 1
                break
            position = start
        if position < end:
            file.truncate(position)


def first_difference(there: Any, here: Any) -> tuple[str, Any, Any] | None:
    """The first field in which two resolved configurations differ in what is run: (dotted field, there, here)."""
    there, here = _what_matters(there), _what_matters(json.loads(json.dumps(here)))
    # other environments altogether: which, not how the first of them differ
    labels = [[each.get("label") for each in config["environments"]] for config in (there, here)]
    if labels[0] != labels[1]:
        return "environments", labels[0], labels[1]
    return _difference(there, here, "")


def _what_matters(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in config.items() if k not in _FREE_FIELDS}
    kept["environments"] = [
        {k: v for k, v in environment.items() if k not in _FREE_FIELDS}
        for environment in config.get("environments", [])
    ]
    model = dict(config.get("model", {}))
    model["options"] = {k: v for k, v in model.get("options", {}).items() if k not in _FREE_MODEL_OPTIONS}
    kept["model"] = model
    return kept


def _difference(there: Any, here: Any, path: str) -> tuple[str, Any, Any] | None:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in [*here, *(k for k in there if k not in here)]:
            found = _difference(there.get(key), here.get(key), f"{path}.{key}" if path else key)
            if found:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for i, (a, b) in enumerate(zip(there, here, strict=True)):
            found = _difference(a, b, f"{path}[{i}]")
            if found:
                return found
        return None
    return None if there == here and isinstance(there, bool) == isinstance(here, bool) else (path, there, here)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _read_json(path: Path, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RunFolderError(f"{path}: is damaged ({error}); choose another output_dir") from None
    if not isinstance(data, kind):
        raise RunFolderError(f"{path}: is damaged (no {kind.__name__}); choose another output_dir")
    return data


def write_json(path: Path, data: Any) -> None:
    """Write `data` so that the file is either the old one or the new one, whatever happens."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, ensure_ascii=True, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
