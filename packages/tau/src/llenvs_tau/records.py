"""Tables of records that are copied when first touched: snapshots of a large database for next to nothing.

The databases of airline and retail are a few dicts of thousands of records each; copying one takes a tenth of a
second, while an episode touches a dozen records. A `RecordTable` holds the shared records of a base and replaces
each by a private copy when it is read by its key. A snapshot is what differs from the base.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Overlay = Mapping[str, Mapping[str, Any]]
"""Table -> key -> the record that differs from the base, or `GONE`."""


class _Gone:
    def __repr__(self) -> str:
        return "GONE"


GONE: Any = _Gone()
"""In an overlay: the record was taken out."""


class RecordTable(dict[str, Any]):
    """A dict of records over a base that it never changes.

    Whoever gets a record by its key may change it: it is private. Iteration gives shared records, which must only
    be read, and that is all that the upstream's tools do with them. The storage of the dict is always current,
    since serialisers read it without asking the methods.

    Args:
        base: the shared records.
        overlay: records that take the place of those of the base, shared as well.
    """

    __slots__ = ("_own", "_touched")

    def __init__(self, base: Mapping[str, Any], overlay: Mapping[str, Any] | None = None) -> None:
        super().__init__(base)
        self._own: set[str] = set()  # records that nobody else holds
        self._touched: dict[str, None] = {}  # keys whose records are not the base's, in the order of the changes
        for key, record in (overlay or {}).items():
            self._touched[key] = None
            if record is GONE:
                dict.pop(self, key, None)
            else:
                dict.__setitem__(self, key, record)

    def snapshot(self) -> dict[str, Any]:
        """What differs from the base; from now on shared with whoever gets it."""
        self._own.clear()
        return {key: dict.get(self, key, GONE) for key in self._touched}

    @property
    def touched(self) -> Iterator[str]:
        """Keys of records that may differ from the base's."""
        return iter(self._touched)

    def __getitem__(self, key: str) -> Any:
        record = dict.__getitem__(self, key)
        if key not in self._own:
            record = deepcopy(record)
            self[key] = record
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        dict.__setitem__(self, key, record)
        self._own.add(key)
        self._touched[key] = None

    def __delitem__(self, key: str) -> None:
        dict.__delitem__(self, key)
        self._own.discard(key)
        self._touched[key] = None

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dict; the record is private."""
        if key not in self:
            return default
        return self[key]  # not the get of a dict, which would give a shared record

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As of a dict; the record is private."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        """As of a dict; the record is private."""
        if key not in self and default:
            return default[0]
        record = self[key]
        del self[key]
        return record

    def popitem(self) -> tuple[str, Any]:
        """As of a dict; the record is private."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """As of a dict."""
        for key in list(self):
            del self[key]

    def update(self, *others: Any, **named: Any) -> None:
        """As of a dict."""
        for key, record in dict(*others, **named).items():
            self[key] = record

    def __ior__(self, other: Any) -> RecordTable:  # type: ignore[override, misc]
        self.update(other)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: deepcopy(record, memo) for key, record in self.items()}


def difference(base: Mapping[str, Any], table: RecordTable) -> list[tuple[str, str]]:
    """``(key, JSON)`` of the records in which `table` differs from `base`, sorted; "" for those taken out.

    Two tables over one base hold the same exactly when these are equal.
    """
    found = []
    for key in table.touched:
        record = dict.get(table, key, GONE)  # not the table's own, which would copy it
        now, before = dumped(record), dumped(base.get(key, GONE))
        if now != before:
            found.append((key, now))
    return sorted(found)


def dumped(record: Any) -> str:
    """A record as the upstream's hash of a database sees it; "" for none."""
    return "" if record is GONE else json.dumps(record.model_dump(), sort_keys=True, default=str)
