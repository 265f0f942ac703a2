"""Rows of data sets: from the hub, from a file, or given."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, NotInstalled, UpstreamFailed

_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
_VALID = (
    f"rows (a list of mappings), a datasets.Dataset or DatasetDict, or the path of a {', '.join(_SUFFIXES)} file "
)
_VALID += "or of a folder that Dataset.save_to_disk wrote"


def load_rows(dataset: Any, split: str | None, hub_name: str, environment: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a data set, in its own order.

    Args:
        dataset: what the option of this name was given; None for the data set `hub_name` of the hub.
        split: name of the split, where there are several; None for the only one.
        hub_name: ``owner/name`` on the hub.
        environment: ``gem/id``, for errors.

    Raises:
        InvalidOption: there is nothing to read, or no such split.
        UpstreamFailed: the hub could not be read; says how to do without.
    """
    if dataset is None:
        return _from_hub(hub_name, split, environment)
    if isinstance(dataset, str | Path):
        return _from_path(Path(dataset).expanduser(), split)
    if isinstance(dataset, Mapping):
        return _split_of(dataset, split)
    if isinstance(dataset, Sequence) and not isinstance(dataset, bytes):
        return _checked(dataset)
    if hasattr(dataset, "column_names") and hasattr(dataset, "__getitem__"):  # datasets.Dataset
        rows: Sequence[Mapping[str, Any]] = dataset
        return rows
    raise InvalidOption("dataset", dataset, "cannot be read", valid=_VALID)


def shuffled(size: int, seed: int) -> list[int]:
    """The order into which ``datasets.Dataset.shuffle(seed)`` brings so many rows."""
    import numpy as np

    return [int(i) for i in np.random.default_rng(seed).permutation(size)]


def _split_of(splits: Mapping[Any, Any], split: str | None) -> Sequence[Mapping[str, Any]]:
    names = [str(name) for name in splits]
    if split is None and len(names) == 1:
        split = names[0]
    if split not in splits:
        problem = "must be given: there are several splits" if split is None else "is no split of this data set"
        raise InvalidOption("split", split, problem, valid=", ".join(names))
    found = splits[split]
    return found if hasattr(found, "column_names") else _checked(found)


def _checked(rows: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidOption("dataset", rows, "is no list of rows", valid=_VALID)
    return rows


def _from_path(path: Path, split: str | None) -> Sequence[Mapping[str, Any]]:
    if path.is_dir():
        _require_datasets()
        import datasets

        try:
            found = datasets.load_from_disk(str(path))
        except (OSError, ValueError) as error:
            raise InvalidOption("dataset", str(path), f"is no saved data set ({error})", valid=_VALID) from None
        return _split_of(found, split) if isinstance(found, Mapping) else found
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidOption("dataset", str(path), "is no file of rows", valid=_VALID)
    try:
        return _checked(_read(path))
    except OSError as error:
        raise InvalidOption("dataset", str(path), f"cannot be read ({error.strerror or error})") from None
    except (ValueError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidOption("dataset", str(path), f"cannot be read as {path.suffix}: {error}") from None


def _read(path: Path) -> Any:
    match path.suffix.lower():
        case ".jsonl":
            with path.open(encoding="utf-8") as lines:
                return [json.loads(line) for line in lines if line.strip()]
        case ".json":
            return json.loads(path.read_text(encoding="utf-8"))
        case ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist()


def _from_hub(name: str, split: str | None, environment: str) -> Sequence[Mapping[str, Any]]:
    _require_datasets()
    import datasets

    bars = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        found = datasets.load_dataset(name, split=split)
    except Exception as error:
        said = (
            f"{type(error).__name__}: {error}; without the hub give the rows: dataset=[...] or "
            'dataset="path/to/rows.jsonl"'
        )
        raise UpstreamFailed(environment, f"loading {name} from the Hugging Face hub", said) from error
    finally:
        if not bars:
            datasets.enable_progress_bars()
    return _split_of(found, None) if isinstance(found, Mapping) else found


def _require_datasets() -> None:
    if find_spec("datasets") is None:
        raise NotInstalled("datasets, which reads the hub,", "gem")
