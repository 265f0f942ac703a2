"""Rows of data sets as files and as `datasets.Dataset`, made a chunk at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, NotInstalled

Row = Mapping[str, Any]


def columns(extra: str) -> Any:
    """The module `pyarrow`.

    Args:
        extra: of ``llenvs``, which brings it.

    Raises:
        NotInstalled: it is missing.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise NotInstalled("the library `pyarrow`", extra) from None
    return pyarrow


def hf_dataset(rows: Iterable[Row], schema: Any, chunk: int, extra: str) -> Any:
    """The rows as a `datasets.Dataset`; not cached on disk, so never those of an earlier call.

    Args:
        rows: each with the columns of `schema`.
        schema: of pyarrow.
        chunk: rows that are held as Python objects at once.
        extra: of ``llenvs``, which brings `datasets`.

    Raises:
        NotInstalled: `datasets` is missing.
    """
    try:
        import datasets
    except ImportError:
        raise NotInstalled("the library `datasets`", extra) from None
    return datasets.Dataset(columns(extra).Table.from_batches(_batches(rows, schema, chunk), schema=schema))


def write_parquet(path: Path, rows: Iterable[Row], schema: Any, chunk: int) -> Path:
    """Write a Parquet file; see `hf_dataset`. `path` appears when it is complete.

    Raises:
        InvalidOption: its folder does not exist.
    """
    import pyarrow.parquet

    with _complete(path) as partial, pyarrow.parquet.ParquetWriter(partial, schema) as writer:
        for batch in _batches(rows, schema, chunk):
            writer.write_batch(batch)
    return path


def write_lines(path: Path, rows: Iterable[Row]) -> Path:
    """Write a file of one JSON object a line. `path` appears when it is complete.

    Raises:
        InvalidOption: its folder does not exist.
    """
    with _complete(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


def file_path(path: Any) -> Path:
    """`path`, as given to a data set.

    Raises:
        InvalidOption: it is no path.
    """
    try:
        return Path(path)
    except TypeError:
        raise InvalidOption("path", path, "is no path of a file") from None


def _batches(rows: Iterable[Row], schema: Any, chunk: int) -> Iterator[Any]:
    import pyarrow

    waiting = iter(rows)
    while held := list(islice(waiting, chunk)):
        yield pyarrow.RecordBatch.from_pylist(held, schema=schema)


@contextmanager
def _complete(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place at the end, or is removed."""
    if not path.parent.is_dir():
        raise InvalidOption("path", str(path), "is in a folder that does not exist")
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
