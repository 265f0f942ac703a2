"""The upstream's environment for trying things out: a story of five words."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from llenvs_aviary.options import DummyOptions
from llenvs_aviary.tasks import TaskSource, selected
from llenvs_aviary.upstream import load, versions


class DummyTasks(TaskSource):
    """One story for each of `tasks`, or `size` times (once, if not told) one about anything."""

    success_signal = "reward"
    branching = "copy"
    uses_random = True

    def __init__(self, options: DummyOptions) -> None:
        self._tasks: list[str | None] = [*options.tasks] if options.tasks else [None] * (options.size or 1)
        self._order = selected(len(self._tasks), options.size, options.seed)
        self._ends = options.end_immediately

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return versions("fhaviary")

    def __len__(self) -> int:
        return len(self._order)

    def make(self, index: int) -> Any:
        """See `TaskSource`."""
        return self._made(self._tasks[self._order[index]])

    def copied(self, env: Any) -> Any:
        """See `TaskSource`. The tools hold the original, but read nothing of it that ever changes."""
        made = self._made(env.task)
        made.tools = env.tools
        made.state = env.state.model_copy(update={"messages": list(env.state.messages)})
        return made

    def size_of(self, env: Any) -> int:
        """See `TaskSource`; the messages are those of the original."""
        return 2048 + sys.getsizeof(env.state.messages)

    def _made(self, task: str | None) -> Any:
        return load().DummyEnv(task=task, end_immediately=self._ends)
