"""The worker's side: grades answers and makes items of reasoning_gym, in the child process.

Requests (see `llenvs.core.simulator.EngineProcess`); what is no JSON travels as the raw part, exactly encoded:

    {"do": "grade", "answer": text, "truths": [text, ...]}               -> {"correct": bool}
    {"do": "item", "name": ..., "size": n, "seed": n, "index": i}        -> {}, the item
    {"do": "score", "name": ..., "size": n, "seed": n, "answer": ...}, the item
                                                                         -> {"score": number} or {"raised": text}
"""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from llenvs.core.encoding import dumps, encode, loads
from llenvs.core.errors import EncodingFailed
from llenvs.core.simulator.confinement import confine
from llenvs_gem import guard
from llenvs_gem.upstream import module

_MAX_OPEN = 32  # data sets kept made
_LAST_WORDS = 16 << 20  # bytes of what it may write to its log


class Service:
    """Data sets by what makes them, and the requests on them."""

    def __init__(self) -> None:
        self._datasets: OrderedDict[tuple[str, int, int], Any] = OrderedDict()

    def handle(self, header: Mapping[str, Any], payload: bytes) -> tuple[Any, bytes]:
        """The answer to one request."""
        match header["do"]:
            case "grade":
                return {"correct": _grade(header["answer"], header["truths"])}, b""
            case "item":
                return {}, dumps(self._item(header)).encode()
            case "score":
                return self._score(header, loads(payload)), b""
        raise ValueError(f"unknown request {header['do']!r}")

    def _dataset(self, header: Mapping[str, Any]) -> Any:
        import reasoning_gym

        key = header["name"], header["size"], header["seed"]
        if key not in self._datasets:
            _reseed(header["seed"])
            self._datasets[key] = reasoning_gym.create_dataset(key[0], size=key[1], seed=key[2])
        self._datasets.move_to_end(key)
        while len(self._datasets) > _MAX_OPEN:
            self._datasets.popitem(last=False)
        return self._datasets[key]

    def _item(self, header: Mapping[str, Any]) -> dict[str, Any]:
        dataset = self._dataset(header)
        if hasattr(dataset, "size"):
            dataset.size = header["size"]  # word_ladder shortens itself for good when one item cannot be made
        _reseed(header["seed"] + header["index"])
        return _plain(dataset[header["index"]])

    def _score(self, header: Mapping[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"score": float(self._dataset(header).score_answer(answer=header["answer"], entry=entry))}
        except Exception as error:  # noqa: BLE001 - a scorer may raise anything on a model's text
            return {"raised": f"{type(error).__name__}: {error}"[:300]}


def engine() -> Callable[[Mapping[str, Any], bytes], tuple[Any, bytes]]:
    """Import the upstreams, put up the guard and the walls; the function that answers requests."""
    warnings.simplefilter("ignore")
    module("gem.utils.math_grader")
    guard.install()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - some generators print
    confine(written=_LAST_WORDS)
    return Service().handle


def _grade(answer: str, truths: list[str]) -> bool:
    grade = module("gem.utils.math_grader").grade
    return any(grade(answer, truth, fast=False) for truth in truths)


def _reseed(seed: int) -> None:
    """list_functions and others draw from the global generators."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % (1 << 32))


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """`entry` with what is no plain data as text (codeio's programs return anything; scoring does not use it)."""
    metadata = dict(entry["metadata"])
    for name, value in metadata.items():
        try:
            encode(value)
        except EncodingFailed:
            metadata[name] = str(value)
    return {**entry, "metadata": metadata}
