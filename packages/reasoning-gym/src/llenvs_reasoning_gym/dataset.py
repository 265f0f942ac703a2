"""Datasets: items by index and scores of answers, in this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from llenvs_reasoning_gym.catalogue import COMPOSITE
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.scoring import Score, score, unparsable

CACHE_SIZE = 32


class Dataset(ABC):
    """What an environment needs of the upstream. Safe under threads."""

    @abstractmethod
    def entry(self, index: int) -> dict[str, Any]:
        """Item `index`: ``{"question": str, "answer": str | None, "metadata": dict}``, plain data."""

    @abstractmethod
    def score(self, answer: str | None, entry: Mapping[str, Any]) -> Score:
        """What `answer` (None: there is none) is worth for an item of this dataset."""

    @abstractmethod
    def close(self) -> None:
        """Free what it holds; may be called twice."""


class LocalDataset(Dataset):
    """An upstream dataset in this process."""

    def __init__(self, recipe: Recipe, repair: bool = True) -> None:
        self.recipe = recipe
        self.upstream, self._lock = _built(recipe)
        self._name = None if recipe.name == COMPOSITE else recipe.name
        self._repair = repair

    def entry(self, index: int) -> dict[str, Any]:
        """See `Dataset`."""
        # some generators keep what belongs to the item on themselves while they make it
        with self._lock:
            item: dict[str, Any] = self.upstream[index]
        return item

    def score(self, answer: str | None, entry: Mapping[str, Any]) -> Score:
        """See `Dataset`."""
        if self._name is not None:
            return score(self.upstream, self._name, answer, entry, self._repair)
        name = entry["metadata"].get("source_dataset")
        part = self.upstream.datasets.get(name)
        if part is None:
            return unparsable(COMPOSITE, f"{name!r} is no part of this composite")
        return score(part, name, answer, entry, self._repair)

    def close(self) -> None:
        """Nothing to free: built datasets stay in a small cache."""


_cache: OrderedDict[str, tuple[Any, threading.Lock]] = OrderedDict()
_cache_lock = threading.Lock()


def _built(recipe: Recipe) -> tuple[Any, threading.Lock]:
    """The upstream dataset of `recipe` and its lock; equal recipes share one, the last `CACHE_SIZE` are kept."""
    key = recipe.key
    with _cache_lock:
        if key not in _cache:
            _cache[key] = (recipe.build(), threading.Lock())
        _cache.move_to_end(key)
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
        return _cache[key]
