"""Recipes: where a state of a simulator comes from, as a value that can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import canonical, dumps, record
from llenvs.core.observation import Observation

_SHOWN = 300  # characters of an observation that a recipe keeps, for the message of ReplayDiverged


@record
@dataclass(frozen=True)
class Turn:
    """One call of the upstream and what came of it.

    Attributes:
        action: what was done; None for the beginning of the episode.
        observed: digest of the whole observation that followed.
        excerpt: the first characters of its prompt, for people.
        replies: what was heard from outside meanwhile (see `Outside`).
    """

    action: Action | None
    observed: str
    excerpt: str = ""
    replies: tuple[Any, ...] = ()

    @classmethod
    def of(cls, action: Action | None, observation: Observation, replies: tuple[Any, ...]) -> Turn:
        """The turn in which `action` led to `observation`."""
        return cls(action, digest(observation), observation.prompt[:_SHOWN], replies)

    @cached_property
    def content(self) -> bytes:
        """Digest of everything in the turn."""
        return _hash(canonical([self.action, self.observed, self.replies]).encode())


@record
@dataclass(frozen=True)
class Recipe:
    """How to get to a state: task, seed, and the turns so far.

    Attributes:
        environment: ``adapter/name``.
        task_index, seed: as given to `reset`.
        turns: the beginning and one per action; empty where a portable snapshot makes replay unnecessary.
    """

    environment: str
    task_index: int
    seed: int
    turns: tuple[Turn, ...] = ()

    @cached_property
    def key(self) -> bytes:
        """Equal for equal recipes alone; computed from the content, so nobody can claim another's."""
        return list(self._keys())[-1]

    def extended(self, turn: Turn) -> Recipe:
        """This recipe and one more turn."""
        longer = Recipe(self.environment, self.task_index, self.seed, (*self.turns, turn))
        # the key of a long recipe from that of its parent; the dataclass is frozen, its cache is not
        longer.__dict__["key"] = _hash(self.key + turn.content)
        return longer

    def keys_backwards(self) -> Iterator[tuple[int, bytes]]:
        """``(number of turns, key)`` of this recipe and all it grew from that have turns, the longest first."""
        keys = list(self._keys())
        return ((count, keys[count]) for count in range(len(self.turns), 0, -1))

    def _keys(self) -> Iterator[bytes]:
        key = _hash(dumps((self.environment, self.task_index, self.seed)).encode())
        yield key
        for turn in self.turns:
            key = _hash(key + turn.content)
            yield key


def snapshot_key(recipe: Recipe, snapshot: bytes) -> bytes:
    """Equal for states of the same task and seed with the same portable snapshot."""
    return _hash(f"{recipe.environment}\0{recipe.task_index}\0{recipe.seed}\0".encode() + snapshot)


def digest(observation: Observation) -> str:
    """16 hexadecimal digits that differ when anything in `observation` does."""
    return blake2b(canonical(observation).encode(), digest_size=8).hexdigest()


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
