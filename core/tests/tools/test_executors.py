"""Executors: every call gets a result that a model can read, whatever the tool does."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import (
    AsyncToolExecutor,
    InvalidToolSchema,
    SimpleToolExecutor,
    Tool,
    ToolCall,
    ToolDefinition,
    ToolExecutor,
    ToolStatus,
)
from llenvs.core.tools.errors import ToolFailed
from llenvs.core.tools.executor import with_ids

EXECUTORS = [SimpleToolExecutor, AsyncToolExecutor]


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    a: int
    b: str


class Colour(enum.Enum):
    RED = "red"


class Hateful:
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


def add(a: int, b: int) -> int:
    return a + b


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def raises(kind: str) -> str:
    class Rude(BaseException):
        pass

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    kinds: dict[str, BaseException] = {
        "value": ValueError("bad value"),
        "empty": KeyError(),
        "exit": SystemExit(3),
        "stop": StopIteration(),
        "generator_exit": GeneratorExit(),
        "cancelled": asyncio.CancelledError(),
        "rude": Rude("mine"),
        "mute": Mute(),
        "failed": ToolFailed("no such file: x"),
        "timeout": TimeoutError("too slow"),
    }
    raise kinds[kind]


async def araises(kind: str) -> str:
    return raises(kind)


def returns(kind: str) -> Any:
    loop: list[Any] = []
    loop.append(loop)
    values: dict[str, Any] = {
        "none": None,
        "true": True,
        "text": "plain \ud800 text",
        "float": 0.1,
        "nan": float("nan"),
        "huge": 10**5000,
        "list": [1, "é", None],
        "dict": {"a": {"b": (1, 2)}, 3: {4}},
        "model": Point(x=1),
        "dataclass": Pair(1, "b"),
        "enum": Colour.RED,
        "date": dt.date(2026, 1, 2),
        "bytes": b"caf\xc3\xa9 \xff",
        "object": object(),
        "loop": loop,
        "hateful": Hateful(),
        "generator": (i for i in iter(int, 1)),
        "coroutine": wait(0.0),
        "long": "x" * 300,
    }
    chosen = values.pop(kind)
    for other in values.values():
        if asyncio.iscoroutine(other):
            other.close()
    return chosen


@pytest.fixture(params=EXECUTORS, ids=lambda kind: kind.__name__)
def executor(request: pytest.FixtureRequest) -> Iterator[ToolExecutor]:
    made: ToolExecutor = request.param([add, wait, raises, araises, returns], max_characters=250)
    with made:
        yield made


def one(executor: ToolExecutor, name: str, **arguments: Any) -> tuple[str, str]:
    (result,) = executor.execute([ToolCall(name, arguments, "id")]).results
    assert (result.call_id, result.name) == ("id", name)
    return result.status.value, result.content


def test_a_call_that_works(executor: ToolExecutor) -> None:
    assert one(executor, "add", a=2, b=40) == ("success", "42")
    assert one(executor, "wait", seconds=0.0) == ("success", "waited")


@pytest.mark.parametrize("tool", ["raises", "araises"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("value", "Error: ValueError: bad value"),
        ("empty", "Error: KeyError"),
        ("exit", "Error: SystemExit: 3"),
        ("generator_exit", "Error: GeneratorExit"),
        ("rude", "Error: Rude: mine"),
        ("mute", "Error: Mute: (no message)"),
        ("failed", "Error: no such file: x"),
        ("timeout", "Error: TimeoutError: too slow"),
    ],
)
def test_a_tool_that_raises(executor: ToolExecutor, tool: str, kind: str, content: str) -> None:
    assert one(executor, tool, kind=kind) == ("error", content)


@pytest.mark.parametrize(("tool", "kind"), [("raises", "stop"), ("raises", "cancelled"), ("araises", "stop")])
def test_a_tool_that_raises_what_loops_take_for_their_own(executor: ToolExecutor, tool: str, kind: str) -> None:
    status, content = one(executor, tool, kind=kind)
    assert status == "error"
    assert content.startswith("Error: ")


@pytest.mark.parametrize("tool", ["interrupted", "ainterrupted"])
def test_an_interrupt_that_no_person_made(tool: str) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    async def ainterrupted() -> str:
        raise KeyboardInterrupt

    executor = AsyncToolExecutor([interrupted, ainterrupted])
    for _ in range(2):  # the threads behind it are still there
        assert one(executor, tool) == ("error", "Error: KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        SimpleToolExecutor([interrupted]).execute([ToolCall("interrupted")])


@pytest.mark.parametrize("kind", EXECUTORS)
def test_an_async_tool_that_cancels_itself(kind: Any) -> None:
    status, content = one(kind([araises]), "araises", kind="cancelled")
    assert (status, content) == ("error", "Error: the tool cancelled itself.")


@pytest.mark.parametrize("kind", EXECUTORS)
def test_an_exception_whose_text_ends_the_process(kind: Any) -> None:
    class Malicious(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    def raises() -> str:
        raise Malicious

    assert one(kind([raises]), "raises") == ("error", "Error: Malicious: (no message)")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("none", "(no output)"),
        ("true", "True"),
        ("text", "plain \ufffd text"),
        ("float", "0.1"),
        ("nan", "nan"),
        ("list", '[1,"é",null]'),
        ("dict", '{"a":{"b":[1,2]},"3":[4]}'),
        ("model", '{"x":1}'),
        ("dataclass", '{"a":1,"b":"b"}'),
        ("enum", '"red"'),
        ("date", '"2026-01-02"'),
        ("bytes", "café \ufffd"),
        ("loop", "[[...]]"),
        ("long", "x" * 250 + "\n[cut here: 250 of 300 characters]"),
    ],
)
def test_what_tools_return_becomes_text(executor: ToolExecutor, kind: str, content: str) -> None:
    assert one(executor, "returns", kind=kind) == ("success", content)


def test_odd_values(executor: ToolExecutor) -> None:
    assert one(executor, "returns", kind="object")[1].startswith("<object object at ") or one(
        executor, "returns", kind="object"
    )[1].startswith('"<object object at ')
    assert one(executor, "returns", kind="hateful") == ("error", "Error: RuntimeError: no text for you")
    assert one(executor, "returns", kind="generator") == (
        "error",
        "Error: the tool returned no value but generator",
    )
    assert one(executor, "returns", kind="coroutine") == (
        "error",
        "Error: the tool returned no value but coroutine",
    )
    status, content = one(executor, "returns", kind="huge")
    assert status == "success"
    assert content.startswith("0x")


def test_unknown_tools_are_told_with_the_nearest_names(executor: ToolExecutor) -> None:
    assert one(executor, "ad", a=1) == (
        "unknown_tool",
        "Error: there is no tool 'ad'. Did you mean 'add'? Available tools: add, wait, raises, araises, returns.",
    )
    assert one(executor, "")[0] == "unknown_tool"
    assert len(one(executor, "x" * 100_000)[1]) < 400


def test_arguments_that_do_not_fit_are_told_all_at_once(executor: ToolExecutor) -> None:
    status, content = one(executor, "add", a="1", c=3)
    assert status == "invalid_arguments"
    assert content == (
        "Error: invalid arguments for 'add': 'b' is a required property; Additional properties are not allowed "
        "('c' was unexpected); a: '1' is not of type 'integer'"
    )
    assert len(one(executor, "add", a="x" * 100_000, b=1)[1]) < 500


def test_a_call_that_could_not_be_read_is_answered_with_why(executor: ToolExecutor) -> None:
    (result,) = executor.execute([ToolCall("add", {}, "id", "the JSON ends too early", "{")]).results
    assert (result.status, result.content) == (ToolStatus.INVALID_ARGUMENTS, "Error: the JSON ends too early")


def test_results_are_in_the_order_of_the_calls(executor: ToolExecutor) -> None:
    calls = [
        ToolCall("wait", {"seconds": 0.05}, "a"),
        ToolCall("nothing", {}, "b"),
        ToolCall("add", {"a": 1, "b": 2}, "c"),
        ToolCall("raises", {"kind": "value"}, "d"),
    ]
    results = executor.execute(calls).results
    assert [(r.call_id, r.name, r.status.value) for r in results] == [
        ("a", "wait", "success"),
        ("b", "nothing", "unknown_tool"),
        ("c", "add", "success"),
        ("d", "raises", "error"),
    ]
    assert asyncio.run(executor.aexecute(calls)).results == results
    assert executor.execute([]).results == ()


# -- state --------------------------------------------------------------------------------------------------------


def put(hidden: dict[str, Any], item: str) -> tuple[str, dict[str, Any]]:
    hidden["basket"].append(item)
    if item == "bomb":
        raise ValueError("boom")
    return f"{len(hidden['basket'])} items", hidden


def finish(answer: str) -> str:
    if answer == "no":
        raise ValueError("not like this")
    return "done"


SHOP = [Tool.from_callable(put, stateful=True), Tool.from_callable(finish, terminal=True), add]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_stateful_tools_get_a_copy_and_give_a_new_state(kind: Any) -> None:
    executor: ToolExecutor = kind(SHOP)
    before = {"basket": ["a"]}
    done = executor.execute(
        [
            ToolCall("put", {"item": "b"}, "1"),
            ToolCall("put", {"item": "bomb"}, "2"),
            ToolCall("add", {"a": 1, "b": 1}, "3"),
            ToolCall("put", {"item": "c"}, "4"),
        ],
        before,
    )
    assert [r.content for r in done.results] == ["2 items", "Error: ValueError: boom", "2", "3 items"]
    assert done.hidden == {"basket": ["a", "b", "c"]}
    assert before == {"basket": ["a"]}
    assert done.ended_by is None


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_terminal_tool_ends_only_by_success(kind: Any) -> None:
    executor: ToolExecutor = kind(SHOP)
    calls = [
        ToolCall("finish", {"answer": "no"}, "1"),
        ToolCall("finish", {"answer": 3}, "2"),
        ToolCall("add", {"a": 1, "b": 1}, "3"),
        ToolCall("finish", {"answer": "yes"}, "4"),
        ToolCall("put", {"item": "late"}, "5"),
    ]
    done = executor.execute(calls, {"basket": []})
    assert [r.status.value for r in done.results] == ["error", "invalid_arguments", "success", "success", "error"]
    assert done.results[4].content == "Error: not run, since 'finish' had ended the episode."
    assert done.ended_by == "finish"
    assert done.hidden == {"basket": []}
    assert executor.execute(calls[:3]).ended_by is None


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_stateful_tool_that_returns_no_pair(kind: Any) -> None:
    def broken(hidden: Any) -> str:
        return "only this"

    executor: ToolExecutor = kind([Tool.from_callable(broken, stateful=True)])
    done = executor.execute([ToolCall("broken", {}, "1")], {"a": 1})
    assert done.results[0].status is ToolStatus.ERROR
    assert "(result, hidden)" in done.results[0].content
    assert done.hidden == {"a": 1}


# -- time ---------------------------------------------------------------------------------------------------------


def test_calls_run_side_by_side() -> None:
    meeting = threading.Barrier(4, timeout=20)

    def meet(name: str) -> str:
        meeting.wait()
        return name

    arrived: list[str] = []

    async def ameet(name: str) -> str:
        arrived.append(name)
        while len(arrived) < 2:
            await asyncio.sleep(0.001)
        return name

    executor = AsyncToolExecutor([meet, ameet], timeout=20)
    calls = [ToolCall("meet", {"name": str(i)}, str(i)) for i in range(4)]
    calls += [ToolCall("ameet", {"name": str(i)}, str(i)) for i in (4, 5)]
    assert [r.content for r in executor.execute(calls).results] == ["0", "1", "2", "3", "4", "5"]


def test_no_more_calls_at_once_than_allowed() -> None:
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def work(i: int) -> int:
        with lock:
            running.append(i)
            most.append(len(running))
        time.sleep(0.01)
        with lock:
            running.remove(i)
        return i

    executor = AsyncToolExecutor([work], max_concurrency=3)
    results = executor.execute([ToolCall("work", {"i": i}, str(i)) for i in range(12)]).results
    assert [r.content for r in results] == [str(i) for i in range(12)]
    assert max(most) <= 3


def test_a_tool_that_hangs_runs_out_of_time() -> None:
    release = threading.Event()

    def hang() -> str:
        release.wait(60)
        return "late"

    async def stubborn() -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "late"

    quick = Tool.from_callable(hang, name="quick_limit", timeout=0.05)
    executor = AsyncToolExecutor([hang, stubborn, wait, quick, add], timeout=0.3)
    calls = [
        ToolCall("hang", {}, "1"),
        ToolCall("stubborn", {}, "2"),
        ToolCall("wait", {"seconds": 60.0}, "3"),
        ToolCall("quick_limit", {}, "4"),
        ToolCall("add", {"a": 1, "b": 1}, "5"),
    ]
    try:
        contents = [r.content for r in executor.execute(calls).results]
    finally:
        release.set()
    late = "Error: the tool did not finish within 0.3 seconds."
    assert contents == [late, late, late, "Error: the tool did not finish within 0.05 seconds.", "2"]


def test_an_async_tool_that_blocks_its_loop_holds_up_nobody_for_long() -> None:
    release = threading.Event()

    async def block() -> str:
        release.wait(60)
        return "late"

    executor = AsyncToolExecutor([block, wait, add], timeout=0.3)
    try:
        (blocked,) = executor.execute([ToolCall("block", {}, "1")]).results
        assert blocked.content == "Error: the tool did not finish within 0.3 seconds."
        calls = [ToolCall("wait", {"seconds": 0.0}, "2"), ToolCall("add", {"a": 1, "b": 1}, "3")]
        assert [r.content for r in executor.execute(calls).results] == ["waited", "2"]
    finally:
        release.set()


def test_cancelling_an_execution_cancels_its_tools() -> None:
    ended: list[str] = []

    async def patient() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "late"

    async def main() -> None:
        task = asyncio.create_task(AsyncToolExecutor([patient]).aexecute([ToolCall("patient", {}, "1")]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_an_executor_works_from_several_loops_and_threads() -> None:
    executor = AsyncToolExecutor([add, wait])
    calls = [ToolCall("add", {"a": 1, "b": 1}, "1"), ToolCall("wait", {"seconds": 0.0}, "2")]
    outcomes: list[tuple[str, ...]] = []

    def use(own_loop: bool) -> None:
        done = asyncio.run(executor.aexecute(calls)) if own_loop else executor.execute(calls)
        outcomes.append(tuple(r.content for r in done.results))

    threads = [threading.Thread(target=use, args=(i % 2 == 0,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [("2", "waited")] * 8

    async def inside_a_loop() -> tuple[str, ...]:
        return tuple(r.content for r in executor.execute(calls).results)

    assert asyncio.run(inside_a_loop()) == ("2", "waited")


# -- definitions given by hand ------------------------------------------------------------------------------------


def test_a_definition_by_hand_checks_the_full_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "points": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            },
            "mode": {"oneOf": [{"const": "fast"}, {"type": "integer", "minimum": 3}]},
        },
        "required": ["points"],
    }
    tool = Tool(ToolDefinition("draw", "", schema), lambda **arguments: json.dumps(arguments))
    executor = SimpleToolExecutor([tool])
    assert one(executor, "draw", points=[{"x": 1}], mode=3) == ("success", '{"points": [{"x": 1}], "mode": 3}')
    assert one(executor, "draw", points=[{}])[1] == (
        "Error: invalid arguments for 'draw': points[0]: 'x' is a required property"
    )
    status, content = one(executor, "draw", points=[{"x": 1}], mode=1)
    assert status == "invalid_arguments"
    assert "'fast' was expected or mode: 1 is less than the minimum of 3" in content


def test_a_schema_that_is_wrong_is_the_owners_error() -> None:
    bad = Tool(ToolDefinition("f", "", {"type": "objekt"}), lambda: None)
    with pytest.raises(InvalidToolSchema, match=r"tool 'f'.*objekt"):
        SimpleToolExecutor([bad])
    with pytest.raises(InvalidToolSchema, match=r"tool 'f'.*a mapping"):
        SimpleToolExecutor([Tool(ToolDefinition("f", "", True), lambda: None)])  # type: ignore[arg-type]
    with pytest.raises(InvalidToolSchema, match="is not a 'regex'"):
        SimpleToolExecutor([Tool(ToolDefinition("f", "", {"properties": {"a": {"pattern": "("}}}), lambda a: a)])


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/Missing"}}},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"$ref": "#"},
        {"$id": "http://[none", "properties": {"a": {"$ref": "b"}}},
    ],
)
def test_a_schema_whose_fault_shows_late_ends_no_episode(schema: dict[str, Any]) -> None:
    executor = SimpleToolExecutor([Tool(ToolDefinition("f", "", schema), lambda a: a)])
    status, content = one(executor, "f", a="x")
    assert status == "error"
    assert "the tool 'f' is broken" in content


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_number_that_the_check_of_the_schema_cannot_divide(kind: Any) -> None:
    schema = {"properties": {"a": {"type": "number", "multipleOf": 0.1}}}
    status, content = one(kind([Tool(ToolDefinition("f", "", schema), lambda a: a)]), "f", a=10**400)
    assert status == "error"
    assert "too large" in content


def test_ids_are_told_apart_also_from_those_that_a_model_wrote() -> None:
    given = ["call_0_1", "", "call_0_1", "x", "call_0_2"]
    ids = [call.id for call in with_ids([ToolCall("f", id=each) for each in given], "call_0")]
    assert len(set(ids)) == 5
    assert [ids[0], *ids[3:]] == ["call_0_1", "x", "call_0_2"]


def test_tools_are_given_as_functions_tools_or_by_name() -> None:
    assert [d.name for d in SimpleToolExecutor({"plus": add, "wait": wait}).definitions] == ["plus", "wait"]
    with pytest.raises(InvalidOption, match="two tools have this name"):
        SimpleToolExecutor([add, add])
    with pytest.raises(InvalidOption, match="functions or Tool objects"):
        SimpleToolExecutor([3])
    with pytest.raises(InvalidOption, match="is called 'add'"):
        SimpleToolExecutor({"plus": Tool.from_callable(add)})
    with pytest.raises(InvalidOption, match="timeout"):
        AsyncToolExecutor([add], timeout=0)
