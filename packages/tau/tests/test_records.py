"""Tables whose records are copied when first touched."""

from __future__ import annotations

import json

from pydantic import BaseModel

from llenvs_tau.records import GONE, RecordTable, difference


class Row(BaseModel):
    value: int
    tags: list[str] = []


class Database(BaseModel):
    rows: dict[str, Row]


def base() -> dict[str, Row]:
    return {key: Row(value=number) for number, key in enumerate("abc")}


def test_what_is_read_by_key_may_be_changed() -> None:
    shared = base()
    table = RecordTable(shared)
    table["a"].value = 7
    table["b"].tags.append("x")
    assert (shared["a"].value, shared["b"].tags) == (0, [])
    assert (table["a"].value, table["b"].tags, table["c"].value) == (7, ["x"], 2)
    assert table.get("a") is table["a"] is table.setdefault("a", Row(value=9))
    assert table.get("z") is None


def test_a_snapshot_is_apart_from_what_follows() -> None:
    table = RecordTable(base())
    table["a"].value = 1
    snapshot = table.snapshot()
    table["a"].value = 2
    first, second = RecordTable(base(), snapshot), RecordTable(base(), snapshot)
    first["a"].value = 3
    assert [t["a"].value for t in (table, first, second)] == [2, 3, 1]
    assert list(snapshot) == ["a"]
    assert snapshot["a"].value == 1


def test_records_that_come_and_go() -> None:
    shared = base()
    table = RecordTable(shared)
    del table["a"]
    table["d"] = Row(value=4)
    assert table.pop("b").value == 1
    assert table.pop("z", None) is None
    assert list(table) == ["c", "d"]
    snapshot = table.snapshot()
    assert snapshot["a"] is GONE
    again = RecordTable(shared, snapshot)
    assert list(again) == ["c", "d"]
    again.update(e=Row(value=5))
    again |= {"f": Row(value=6)}
    assert again.popitem()[0] == "f"
    again.clear()
    assert (len(again), list(table), list(shared)) == (0, ["c", "d"], ["a", "b", "c"])


def test_serialisation_sees_the_present() -> None:
    shared = base()
    database = Database.model_construct(rows=RecordTable(shared))
    database.rows["a"].value = 9
    database.rows["z"] = Row(value=8)
    dumped = {key: row["value"] for key, row in database.model_dump()["rows"].items()}
    assert dumped == {"a": 9, "b": 1, "c": 2, "z": 8}
    assert json.loads(database.model_dump_json())["rows"]["a"]["value"] == 9


def test_differences() -> None:
    shared = base()
    one, other = RecordTable(shared), RecordTable(shared)
    assert one["a"].value == 0  # touched, and the same
    assert difference(shared, one) == difference(shared, other) == []
    one["b"].value = 5
    other["b"] = Row(value=5)
    assert difference(shared, one) == difference(shared, other) == [("b", '{"tags": [], "value": 5}')]
    del other["c"]
    assert difference(shared, other) == [("b", '{"tags": [], "value": 5}'), ("c", "")]
    one["b"].value = 1
    assert difference(shared, one) == []
