"""Where the upstream's environment objects come from, and what is known of them besides their interface."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from llenvs.core.simulator import Snapshots
from llenvs_aviary.copying import deep_size
from llenvs_aviary.options import Branching


class TaskSource(ABC):
    """The tasks of an environment, each as a fresh object of the upstream.

    Attributes:
        success_signal, success_threshold: see `EnvironmentSpec`.
        snapshots: LOCAL where environment objects can be copied, NONE where they live elsewhere.
        branching: whether each object is looked at before it is copied ("auto").
        deterministic: see `EnvironmentSpec`.
        uses_random: whether global random numbers must be seeded for each step.
        records: whether `heard` and `tell` are used.
        failure_prefixes: how the text of a tool that failed begins.
        supports_images: whether messages may hold pictures.
        waits: whether coroutines of its environment objects wait for anything, such as a thread or the network.
        task: an unchanging task text that upstream does not give.
    """

    success_signal: str | None = None
    success_threshold: float = 1.0
    snapshots: Snapshots = Snapshots.LOCAL
    branching: Branching = "auto"
    deterministic: bool = True
    uses_random: bool = False
    records: bool = False
    failure_prefixes: ClassVar[tuple[str, ...]] = ("Encountered exception during tool call: ",)
    supports_images: bool = False
    waits: bool = True
    task: str | None = None

    @property
    @abstractmethod
    def metadata(self) -> Mapping[str, Any]:
        """Versions, and whatever else identifies the tasks."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def make(self, index: int) -> Any:
        """A fresh environment object for task `index`, not reset yet."""

    def copied(self, env: Any) -> Any:
        """An independent copy of `env`, which was found fit for it."""
        return copy.deepcopy(env)

    def size_of(self, env: Any) -> int:
        """Bytes that a copy of `env` takes, roughly."""
        return deep_size(env)

    def truth(self, env: Any) -> Mapping[str, Any]:
        """What of `env` belongs into the hidden state; plain data."""
        return {}

    def outcome(self, env: Any) -> Mapping[str, float]:
        """Signals of the last step of an episode, beside the upstream's reward; they carry no weight."""
        return {}

    def failure(self, env: Any) -> BaseException | None:
        """What kept a tool of `env` from working in the last step, when it was not the model's fault."""
        return None

    def heard(self, env: Any) -> Any:
        """What `env` received from outside in the last step, as plain data."""
        return None

    def tell(self, env: Any, heard: Any) -> None:
        """Let `env` receive in its next step what was heard in an earlier run of it."""


def selected(total: int, size: int | None, seed: int | None) -> Sequence[int]:
    """Which of `total` tasks, in which order: shuffled by `seed` (None: as they are), then the first `size`."""
    if seed is None:
        return range(total if size is None else min(size, total))
    order = list(range(total))
    random.Random(seed).shuffle(order)
    return order[:size]
