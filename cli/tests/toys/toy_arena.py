"""A small adapter, found by its entry point like any other: what the commands are tried on."""

import time
from typing import Any

from pydantic import Field

from llenvs.core import (
    Adapter,
    Advance,
    Environment,
    EnvironmentInfo,
    EnvironmentOptions,
    EnvironmentSpec,
    ImageContent,
    Observation,
    RewardType,
    Signal,
    SingleTurnEnvironment,
    SingleTurnOptions,
    Start,
    ToolDefinition,
    ToolResult,
    ToolStatus,
)
from llenvs.core.errors import UpstreamFailed
from llenvs.core.extraction import make_extractor
from llenvs.inference import Backend
from llenvs.inference.errors import AuthenticationFailed, ConnectionFailed, ModelNotFound


class SumOptions(SingleTurnOptions):
    size: int = Field(default=10, ge=1, description="Number of tasks.")


class SlowOptions(SumOptions):
    seconds: float = Field(default=0.2, ge=0, description="How long a step takes.")


class FileOptions(EnvironmentOptions):
    path: str = Field(description="The file with the tasks.")


class Sums(SingleTurnEnvironment[dict[str, int]]):
    """Task i asks for i + 1; the answer None scores 0."""

    def __init__(self, name: str, options: SumOptions) -> None:
        spec = EnvironmentSpec(name, "toy", success_signal="score", metadata={"version": "1.0"})
        super().__init__(spec, make_extractor(options.answer_extractor))
        self.size = options.size

    @property
    def num_tasks(self) -> int:
        return self.size

    def _start(self, task_index: int, seed: int, options: Any) -> Start:
        return Start(Observation(prompt=f"What is {task_index} + 1?"), {"sum": task_index + 1})

    def _score(self, hidden: dict[str, int], answer: str | None) -> list[Signal]:
        right = answer == str(hidden["sum"])
        feedback = None if right else f"not the sum: {answer}"
        return [Signal("score", RewardType.OUTCOME, float(right), feedback)]


class SlowSums(Sums):
    """The same, slowly."""

    def __init__(self, name: str, options: SlowOptions) -> None:
        super().__init__(name, options)
        self.seconds = options.seconds

    def _score(self, hidden: dict[str, int], answer: str | None) -> list[Signal]:
        time.sleep(self.seconds)
        return super()._score(hidden, answer)


class Hostile(Sums):
    """Its text tries to steer the terminal and to look like markup."""

    def _start(self, task_index: int, seed: int, options: Any) -> Start:
        return Start(
            Observation(prompt="\x1b[2J\x1b]0;owned\x07[bold red]not markup[/] [/oops] :smile:"), {"sum": 0}
        )


class Failing(Sums):
    """Its scorer has a bug of its own kind."""

    def _score(self, hidden: dict[str, int], answer: str | None) -> list[Signal]:
        raise ZeroDivisionError("the scorer has a bug")


class Lock(Environment[list[int]]):
    """A lock of three numbers; a tool turns it, words do nothing. Three right turns open it."""

    tools = (
        ToolDefinition(
            "turn",
            "Turn the dial.\nOnce.",
            {
                "type": "object",
                "properties": {"to": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["to"],
            },
        ),
    )

    def __init__(self) -> None:
        super().__init__(
            EnvironmentSpec(
                "lock", "toy", max_steps=6, is_multi_turn=True, supports_tools=True, success_signal="open"
            )
        )

    @property
    def num_tasks(self) -> int:
        return 3

    @property
    def available_tools(self) -> tuple[ToolDefinition, ...]:
        return self.tools

    def _start(self, task_index: int, seed: int, options: Any) -> Start:
        image = ImageContent(data=b"12345")
        observation = Observation(
            prompt="The lock is at 0.", task="Open the lock.", images=(image,), available_tools=self.tools
        )
        return Start(observation, [])

    def _advance(self, state: Any, action: Any) -> Advance:
        turns = list(state.hidden)
        if not action.tool_calls:
            return Advance(
                Observation(prompt=f"Nothing happens: {action.text!r}", available_tools=self.tools), turns
            )
        call = action.tool_calls[0]
        if call.name != "turn":
            result = ToolResult(call.id, f"there is no {call.name}", ToolStatus.UNKNOWN_TOOL, call.name)
            return Advance(Observation(tool_results=(result,), available_tools=self.tools), turns)
        turns.append(call.arguments["to"])
        said = f"turned to {call.arguments['to']!r}, note {call.arguments.get('note')!r}"
        done = turns == [1, 2, 3]
        result = ToolResult(call.id, said, name="turn")
        prompt = "Open!" if done else f"The lock is at {turns[-1]}."
        tools = () if done else self.tools
        return Advance(
            Observation(prompt=prompt, tool_results=(result,), available_tools=tools), turns, terminated=done
        )

    def _signals(self, state: Any, action: Any, next_state: Any) -> list[Signal]:
        return [Signal("open", RewardType.OUTCOME, float(next_state.hidden == [1, 2, 3]))]


class ToyAdapter(Adapter):
    name = "toy"
    description = "Environments to try the commands on."

    def list_environments(self) -> list[EnvironmentInfo]:
        def entry(name: str, category: str, description: str, **more: Any) -> EnvironmentInfo:
            return EnvironmentInfo(name, "toy", description, category, **more)

        return [
            entry("sums", "arithmetic", "Adding one."),
            entry("slow_sums", "arithmetic", "Adding one, slowly."),
            entry("failing", "arithmetic", "A scorer with a bug."),
            entry("lock", "puzzles", "A lock with a dial.", is_multi_turn=True),
            entry("hostile", "puzzles", "Text with [bold]markup[/bold] and \x1b[31mescapes."),
            entry("from_file", "", "Tasks from a file."),
        ]

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        kinds: dict[str, type[EnvironmentOptions]] = {
            "lock": EnvironmentOptions,
            "from_file": FileOptions,
            "slow_sums": SlowOptions,
        }
        if name in kinds:
            return kinds[name]
        return SumOptions

    def create(self, name: str, options: Any) -> Environment[Any]:
        if name == "lock":
            return Lock()
        if name == "from_file":
            raise UpstreamFailed("toy/from_file", "reading the tasks", f"no file {options.path}")
        kind = {"slow_sums": SlowSums, "hostile": Hostile, "failing": Failing}.get(name, Sums)
        return kind(name, options)


ADAPTER = ToyAdapter()


class DeadBackend(Backend):
    """Fails as backends do, at the moment it is told to: when it is made, checked, or asked."""

    name = "toy_dead"

    def __init__(self, model: str = "toy", fails: str = "checked", api_key: str = "") -> None:
        super().__init__(model)
        self.fails = fails
        if fails == "made":
            raise AuthenticationFailed("toy_dead", "no key; set TOY_KEY")

    async def check(self) -> None:
        if self.fails == "checked":
            raise ConnectionFailed("toy_dead", "nothing answers at nowhere:1")

    async def _generate(self, request: Any, n: int) -> Any:
        raise ModelNotFound("toy_dead", f"there is no model {self.model!r}")
