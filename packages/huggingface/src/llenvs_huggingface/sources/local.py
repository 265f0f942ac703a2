"""Data that are here: files, directories, lists."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, listed
from llenvs_huggingface.sources.preparation import files_below, loading, prepared_folder
from llenvs_huggingface.sources.quiet import quiet
from llenvs_huggingface.sources.rows import Origin, Rows, TableRows

FORMATS = {
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
"""Builders of `datasets` by the ending of a file name (``.gz`` and the like may follow)."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_DIGESTED = 256 << 20  # bytes of files that are read to identify them; a second at most

DataFiles = str | Sequence[str] | Mapping[str, str | Sequence[str]]


def load_files(data_files: DataFiles, split: str | None, field: str | None) -> Rows:
    """Rows of one or more files of one format.

    Args:
        data_files: a path or pattern, several, or ``{split: path or paths}``.
        split: with a mapping, the one to load (the only one by default); without, what the rows are called; with
            a slice such as ``test[:100]`` a part of it.
        field: of a JSON file that is one object, the key that holds the rows.

    Raises:
        InvalidOption: a file is missing or of unknown format, the split does not exist.
        UpstreamFailed: the files cannot be read.
    """
    by_split = _by_split(data_files, split)
    base = split_name(split)
    if base is not None and base not in by_split:
        raise InvalidOption("split", split, "data_files has no such split", valid=listed(by_split))
    if base is None and len(by_split) > 1:
        raise InvalidOption("split", split, "data_files has several, so one must be given", valid=listed(by_split))
    chosen = base or next(iter(by_split))
    told = split or (chosen if isinstance(data_files, Mapping) else None)
    paths = by_split[chosen]
    builder, options = _builder(paths)
    if field is not None:
        if builder != "json":
            raise InvalidOption("field", field, "is for JSON files")
        options["field"] = field
    name = os.path.basename(paths[0])
    with quiet() as datasets:
        dataset = loading(
            name,
            None,
            split,
            lambda: datasets.load_dataset(
                builder,
                data_files={chosen: paths},
                split=split or chosen,
                cache_dir=prepared_folder(datasets),
                **options,
            ),
        )
    return TableRows(dataset, Origin(name, None, told, digest(paths)))


def load_directory(
    data_dir: str,
    subset: str | None,
    split: str | None,
    *,
    exact_subset: bool = True,
    exact_split: bool = True,
    origin: Origin | None = None,
) -> Rows:
    """Rows of a directory: a clone or snapshot of a hub repository, data files, or what `save_to_disk` wrote.

    Args:
        data_dir: the directory; a file is loaded as `load_files` does.
        subset, split: what to load; a slice such as ``test[:100]`` is a part of a split.
        exact_subset, exact_split: whether one that is not there is an error; else the only one there stands in.
        origin: where the rows come from, when that is not the directory.

    Raises: as `load_files`.
    """
    path = os.path.abspath(os.path.expanduser(data_dir))
    if os.path.isfile(path):
        return load_files(path, split if exact_split else None, None)
    if not os.path.isdir(path):
        raise InvalidOption("data_dir", data_dir, "there is no such directory")
    name = origin.name if origin is not None else os.path.basename(path)
    if _is_saved(path):
        if subset is not None and exact_subset:
            raise InvalidOption("subset", subset, f"{name} was written by save_to_disk and has none")
        dataset, found = _saved(path, name, split, exact_split)
        return TableRows(dataset, Origin(name, None, found, digest(files_below(path))))
    with quiet() as datasets:
        folder = prepared_folder(datasets, path)
        if not exact_subset and subset not in subsets_of(path):
            subset = None
        builder = loading(
            name, subset, split, lambda: datasets.load_dataset_builder(path, subset, cache_dir=folder)
        )
        # the splits of plain data files are known only after preparing them
        loading(name, subset, split, builder.download_and_prepare)
        wanted = split_there(split, list(builder.info.splits or {}), exact_split, name)
        dataset = loading(name, subset, wanted, lambda: builder.as_dataset(split=wanted))
    if origin is None:
        origin = Origin(name, None, None, digest(files_below(path)))
    return TableRows(dataset, origin._replace(subset=builder.config.name, split=wanted))


def subsets_of(data_dir: str) -> list[str]:
    """The configurations of a directory; none for what `save_to_disk` wrote, for a file, or where none can be
    told.
    """
    path = os.path.abspath(os.path.expanduser(data_dir))
    if not os.path.isdir(path) or _is_saved(path):
        return []
    with quiet() as datasets:
        return loading(os.path.basename(path), None, None, lambda: list(datasets.get_dataset_config_names(path)))


def _is_saved(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in ("state.json", "dataset_dict.json"))


def split_name(split: str | None) -> str | None:
    """``test`` of ``test[:100]``."""
    return None if split is None else split.partition("[")[0].strip()


def digest(paths: Sequence[str]) -> str | None:
    """``sha256:`` and 16 hex digits of what the files hold; None for more than 256 MiB or when one is gone."""
    try:
        if sum(os.path.getsize(path) for path in paths) > _DIGESTED:
            return None
        total = hashlib.sha256()
        for path in paths:
            total.update(hashlib.sha256(Path(path).read_bytes()).digest())
    except OSError:
        return None
    return f"sha256:{total.hexdigest()[:16]}"


def _by_split(data_files: DataFiles, split: str | None) -> dict[str, list[str]]:
    if isinstance(data_files, Mapping):
        if not data_files:
            raise InvalidOption("data_files", data_files, "names no file")
        return {str(name): _found(paths, f"data_files.{name}") for name, paths in data_files.items()}
    return {split_name(split) or "train": _found(data_files, "data_files")}


def _found(paths: str | Sequence[str], option: str) -> list[str]:
    patterns = [paths] if isinstance(paths, str) else list(paths)
    found: list[str] = []
    for pattern in patterns:
        path = os.path.abspath(os.path.expanduser(os.fspath(pattern)))
        matches = [path] if os.path.isfile(path) else sorted(m for m in glob.glob(path) if os.path.isfile(m))
        if not matches:
            problem = "is a directory: give it as data_dir" if os.path.isdir(path) else "there is no such file"
            raise InvalidOption(option, pattern, problem)
        found += matches
    if not found:
        raise InvalidOption(option, paths, "names no file")
    return found


def _builder(paths: Sequence[str]) -> tuple[str, dict[str, Any]]:
    endings = {_ending(path) for path in paths}
    kinds = {FORMATS.get(ending) for ending in endings}
    if None in kinds:
        unknown = next(path for path in paths if _ending(path) not in FORMATS)
        raise InvalidOption(
            "data_files", os.path.basename(unknown), "has an unknown format", valid=", ".join(FORMATS)
        )
    if len(kinds) > 1:
        raise InvalidOption("data_files", [os.path.basename(p) for p in paths], "must be of one format")
    options: dict[str, Any] = {"sep": "\t"} if endings == {".tsv"} else {}
    return str(kinds.pop()), options


def _ending(path: str) -> str:
    name = path.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def _saved(path: str, name: str, split: str | None, exact: bool) -> tuple[Any, str | None]:
    with quiet() as datasets:
        saved = loading(name, None, split, lambda: datasets.load_from_disk(path))
        if not isinstance(saved, datasets.DatasetDict):
            if exact and split is not None and "[" in split:
                raise InvalidOption("split", split, f"{name} was saved as one split; use size for a part of it")
            return saved, None
        base = split_name(split)
        wanted = split_there(base, list(saved), exact, name)
        if split is not None and "[" in split:
            raise InvalidOption("split", split, "slices do not work on what save_to_disk wrote; use size")
        return saved[wanted], wanted


def split_there(split: str | None, there: Sequence[str], exact: bool, name: str) -> str:
    """The split to load, of those that are there: the one asked for (or a slice), else "test", else the only one.

    Raises:
        InvalidOption: it is not there; or none was asked for, and there are several.
    """
    base = split_name(split)
    if split is not None and (base in there or "+" in split):
        return split
    if base is None and "test" in there:
        return "test"
    if len(there) == 1 and (base is None or not exact):
        return there[0]
    problem = "has several splits, so one must be given" if base is None else "has no such split"
    raise InvalidOption("split", split, f"{name} {problem}", valid=listed(there))
