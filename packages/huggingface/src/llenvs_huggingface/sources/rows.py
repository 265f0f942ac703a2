"""Rows by number, wherever they come from."""

from __future__ import annotations

import bisect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llenvs.core.errors import InvalidOption

MATERIALIZED = 50_000
"""Tables of up to so many rows without binary columns become a list (a row then costs microseconds)."""


class Origin(NamedTuple):
    """Where a row comes from.

    Attributes:
        name: hub repository, file or folder name, or "rows" for a list.
        subset, split: None where there is none.
        revision: commit of the hub repository (40 hex digits), ``sha256:`` of local files, or None.
    """

    name: str
    subset: str | None = None
    split: str | None = None
    revision: str | None = None


class Rows(ABC):
    """An ordered collection of rows. Safe under threads."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def columns(self) -> Sequence[str]:
        """Names of the columns."""

    @abstractmethod
    def row(self, index: int) -> dict[str, Any]:
        """Row `index`, counted from 0, as plain data; images as their encoded bytes."""

    @abstractmethod
    def origin(self, index: int) -> Origin:
        """Where row `index` comes from."""

    def number(self, index: int) -> int:
        """The number of row `index` in its origin."""
        return index


class ListRows(Rows):
    """Rows from a list of mappings.

    Raises:
        InvalidOption: an item is no mapping of column names to values.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], origin: Origin) -> None:
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping) or not all(isinstance(key, str) for key in row):
                raise InvalidOption(f"data.{index}", row, "must be a mapping of column names to values")
        self._rows = [dict(row) for row in rows]
        self._columns = tuple(dict.fromkeys(key for row in self._rows for key in row))
        self._origin = origin

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> Sequence[str]:
        """See `Rows`."""
        return self._columns

    def row(self, index: int) -> dict[str, Any]:
        """See `Rows`; a column that this row lacks is None."""
        row = self._rows[index]
        return row if len(row) == len(self._columns) else {key: row.get(key) for key in self._columns}

    def origin(self, index: int) -> Origin:
        """See `Rows`."""
        return self._origin


class TableRows(Rows):
    """Rows of an Arrow table, as they are stored: images and audio are not decoded.

    Args:
        table: a `pyarrow.Table`, or a `datasets.Dataset` (which maps its files into memory).
        origin: where they come from.
    """

    def __init__(self, table: Any, origin: Origin) -> None:
        formatted = hasattr(table, "with_format")
        schema = table.data.schema if formatted else table.schema
        self._cut = table.with_format("arrow").__getitem__ if formatted else _slicing(table)
        self._count = len(table)
        self._columns = tuple(table.column_names)
        self._origin = origin
        self._as_list = self._count <= MATERIALIZED and not has_binary(schema)
        self._list: list[dict[str, Any]] | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    @property
    def columns(self) -> Sequence[str]:
        """See `Rows`."""
        return self._columns

    def row(self, index: int) -> dict[str, Any]:
        """See `Rows`."""
        if not self._as_list:
            row: dict[str, Any] = self._cut(slice(index, index + 1)).to_pylist()[0]
            return row
        if self._list is None:
            with self._lock:
                if self._list is None:
                    self._list = self._cut(slice(0, self._count)).to_pylist()
        return self._list[index]

    def origin(self, index: int) -> Origin:
        """See `Rows`."""
        return self._origin


def _slicing(table: Any) -> Callable[[slice], Any]:
    return lambda part: table.slice(part.start, part.stop - part.start)


def has_binary(schema: Any) -> bool:
    """Whether a pyarrow schema has bytes in a column, at any depth."""
    import pyarrow

    def binary(kind: Any) -> bool:
        if pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind):
            return True
        return any(binary(kind.field(i).type) for i in range(kind.num_fields))

    return any(binary(field.type) for field in schema)


class JoinedRows(Rows):
    """Several collections one after the other."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = list(parts)
        self._starts = [0]
        for part in self._parts:
            self._starts.append(self._starts[-1] + len(part))
        self._columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def columns(self) -> Sequence[str]:
        """See `Rows`."""
        return self._columns

    def _place(self, index: int) -> tuple[Rows, int]:
        part = bisect.bisect_right(self._starts, index) - 1
        return self._parts[part], index - self._starts[part]

    def row(self, index: int) -> dict[str, Any]:
        """See `Rows`."""
        part, inner = self._place(index)
        return part.row(inner)

    def origin(self, index: int) -> Origin:
        """See `Rows`."""
        part, inner = self._place(index)
        return part.origin(inner)

    def number(self, index: int) -> int:
        """See `Rows`."""
        part, inner = self._place(index)
        return part.number(inner)


class SelectedRows(Rows):
    """Some rows of another collection, in an order of their own."""

    def __init__(self, rows: Rows, order: Sequence[int]) -> None:
        self._rows = rows
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @property
    def columns(self) -> Sequence[str]:
        """See `Rows`."""
        return self._rows.columns

    def row(self, index: int) -> dict[str, Any]:
        """See `Rows`."""
        return self._rows.row(int(self._order[index]))

    def origin(self, index: int) -> Origin:
        """See `Rows`."""
        return self._rows.origin(int(self._order[index]))

    def number(self, index: int) -> int:
        """See `Rows`."""
        return self._rows.number(int(self._order[index]))


def selected(rows: Rows, size: int | None, seed: int | None) -> Rows:
    """The first `size` rows (None: all), after shuffling them with `seed` (None: in their own order).

    The shuffled order is ``numpy.random.default_rng(seed).permutation(n)``, which is that of
    `datasets.Dataset.shuffle`.
    """
    count = len(rows)
    if seed is None and (size is None or size >= count):
        return rows
    order: Sequence[int] = range(count)
    if seed is not None:
        import numpy

        order = numpy.random.default_rng(seed).permutation(count).tolist()
    return SelectedRows(rows, order[:size])
