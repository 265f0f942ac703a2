"""Environments as a user would write them."""

from __future__ import annotations

import random
import threading
from typing import Any

from aviary.core import DummyEnv, Environment, Message, TaskDataset, Tool, ToolRequestMessage, fenv
from aviary.env import EnvsTaskDataset


@fenv.start()
def treasure(start: int = 0) -> tuple[str, dict[str, Any]]:
    """A functional environment: walk to 3 and dig."""
    return f"You stand at {start}. Find the treasure.", {"place": start, "log": []}


@treasure.tool()
def walk(by: int, state: Any) -> str:
    """Walk along the line."""
    state.extras["place"] += by
    state.log.append(by)
    return f"at {state.place} after {len(state.log)} walks"


@treasure.tool()
def dig(state: Any) -> str:
    """Dig where you stand."""
    state.done = state.place == 3
    state.reward = 1.0 if state.done else -0.1
    return "gold" if state.done else f"nothing at {state.place}"


@treasure.tool()
def roll(state: Any) -> int:
    """Roll a die."""
    return random.randint(1, 1_000_000)


@treasure.tool()
def fall(state: Any) -> str:
    """Fall."""
    raise RuntimeError("you fell")


class Counter(Environment[None]):
    """Keeps its count in an attribute; its tool is a method."""

    def __init__(self, goal: int = 3) -> None:
        self.goal, self.count = goal, 0

    async def reset(self) -> tuple[list[Message], list[Tool]]:
        self.count = 0
        self.tools = [Tool.from_function(self.add)]
        return [Message(content=f"Count to {self.goal}.")], self.tools

    async def step(self, action: Message) -> tuple[list[Message], float, bool, bool]:
        if not isinstance(action, ToolRequestMessage):
            return self.default_no_tool_calls_response
        messages = await self.exec_tool_calls(action)
        return list(messages), float(self.count == self.goal), self.count >= self.goal, False

    def add(self, number: int = 1) -> str:
        """Add.

        Args:
            number: how much.
        """
        self.count += number
        return str(self.count)


class Closed(Counter):
    """The same, but its tool is a function that holds the environment: a deep copy would share it."""

    async def reset(self) -> tuple[list[Message], list[Tool]]:
        messages, _ = await super().reset()

        def add(number: int = 1) -> str:
            """Add.

            Args:
                number: how much.
            """
            return Counter.add(self, number)

        self.tools = [Tool.from_function(add)]
        return messages, self.tools


class Locked(Counter):
    """The same, but it cannot be copied."""

    def __init__(self, goal: int = 3) -> None:
        super().__init__(goal)
        self.lock = threading.Lock()


class Talking(Counter):
    """Has a system message, pictures, and more than one message a step."""

    async def reset(self) -> tuple[list[Message], list[Tool]]:
        messages, tools = await super().reset()
        return [Message(role="system", content="You are a counter."), *messages], tools

    async def step(self, action: Message) -> tuple[list[Message], float, bool, bool]:
        messages, *rest = await super().step(action)
        picture = Message.create_message(text="Look:", images=[PIXEL])
        return [*messages, Message(content=f"The count is {self.count}."), picture], *rest


PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


class Slow(Counter):
    """Never answers."""

    async def step(self, action: Message) -> tuple[list[Message], float, bool, bool]:
        import asyncio

        await asyncio.sleep(3600)
        raise AssertionError


class Breaking(Counter):
    """Its own step raises."""

    async def step(self, action: Message) -> tuple[list[Message], float, bool, bool]:
        raise KeyError("lost my place")


class Stories(TaskDataset[DummyEnv]):
    """A data set of two stories."""

    def __init__(self, topics: tuple[str, ...] = ("frogs", "kings")) -> None:
        self.topics = topics

    def __len__(self) -> int:
        return len(self.topics)

    def get_new_env_by_idx(self, idx: int) -> DummyEnv:
        return DummyEnv(task=self.topics[idx])


together = EnvsTaskDataset([Counter(2), Counter(4)])
objects = [Counter(2), Counter(4)]
