"""The worker process: makes items and scores answers for its parent, one request at a time.

Run as ``python -m llenvs_reasoning_gym.worker_process`` by `worker.Worker`. Requests come as lines on stdin,
replies leave as lines on the original stdout; both are JSON as `llenvs.core.encoding` writes it:

    {"op": "open", "key": ..., "name": ..., "config": ..., "repair": bool}    -> {"ok": null}
    {"op": "close", "key": ...}                                               -> {"ok": null}
    {"op": "entry", "key": ..., "index": i, "limit": seconds}                 -> {"ok": entry}
    {"op": "score", "key": ..., "answer": ..., "entry": ..., "limit": ...}    -> {"ok": (value, upstream, error)}

or ``{"error": message}``. The first line it writes, before any request, says that it is ready. It ends at the end
of stdin, so it does not outlive its parent; a request in progress is ended by a signal of the operating system,
when the parent dies (Linux) or its time is up.
"""

from __future__ import annotations

import decimal
import os
import signal
import sys
from typing import Any, BinaryIO

if sys.platform == "linux":
    import fcntl

from llenvs.core.encoding import dumps, encode, loads
from llenvs.core.errors import EncodingFailed
from llenvs.core.simulator.confinement import confine
from llenvs_reasoning_gym.catalogue import COMPOSITE
from llenvs_reasoning_gym.dataset import LocalDataset
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.repeatable import repeatable
from llenvs_reasoning_gym.upstream import library

GRACE = 2.0
"""Seconds after the limit of a request at which the process ends itself, should its parent not have ended it."""


class Service:
    """Datasets by key, and the requests on them."""

    def __init__(self) -> None:
        self._datasets: dict[str, LocalDataset] = {}
        self._programs: dict[str, Any] = {}

    def handle(self, request: dict[str, Any]) -> Any:
        """The reply to one request."""
        key = request["key"]
        match request["op"]:
            case "open":
                self._open(key, Recipe(request["name"], request["config"]), request["repair"])
                return None
            case "close":
                self._datasets.pop(key, None)
                self._programs.pop(key, None)
                return None
            case "entry":
                return self._entry(key, request["index"])
            case "score":
                decimal.setcontext(decimal.DefaultContext.copy())
                return tuple(self._datasets[key].score(request["answer"], request["entry"]))
        raise ValueError(f"unknown request {request['op']!r}")

    def _open(self, key: str, recipe: Recipe, repair: bool) -> None:
        self._datasets[key] = dataset = LocalDataset(recipe, repair)
        codeio = _codeio(dataset)
        if codeio is not None:
            self._programs[key] = codeio._jsonl_data

    def _entry(self, key: str, index: int) -> dict[str, Any]:
        dataset = self._datasets[key]
        decimal.setcontext(decimal.DefaultContext.copy())
        codeio = _codeio(dataset)
        if codeio is not None:
            # all codeio datasets of a process share one list of programs: the last one built would win
            type(codeio)._jsonl_data = self._programs[key]
        # word_ladder shortens itself for good when one item cannot be made
        dataset.upstream.size = dataset.recipe.config["size"]
        with repeatable(dataset.recipe.config["seed"] + index):
            entry = dataset.entry(index)
        return entry if codeio is None else _plain(entry)


def _codeio(dataset: LocalDataset) -> Any:
    """The upstream's codeio dataset that `dataset` is or holds, if any."""
    if dataset.recipe.name == COMPOSITE:
        return dataset.upstream.datasets.get("codeio")
    return dataset.upstream if dataset.recipe.name == "codeio" else None


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """`entry` with what its program returned as text where it is no plain data (scoring uses the answer alone)."""
    metadata = dict(entry["metadata"])
    for name in ("input_data", "output_data"):
        if name in metadata:
            try:
                encode(metadata[name])
            except EncodingFailed:
                metadata[name] = str(metadata[name])
    return {**entry, "metadata": metadata}


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until their stream ends."""
    library()
    confine()
    service = Service()
    replies.write(dumps({"ok": "ready"}).encode() + b"\n")
    replies.flush()
    for line in requests:
        request = loads(line)
        _end_with_parent(requests.fileno(), True)
        _set_timer(request.get("limit", 0.0))
        try:
            reply = dumps({"ok": service.handle(request)})
        except Exception as error:  # noqa: BLE001 - the parent reports whatever the upstream raised
            reply = dumps({"error": f"{type(error).__name__}: {error}"[:2000]})
        _set_timer(0.0)
        _end_with_parent(requests.fileno(), False)
        replies.write(reply.encode() + b"\n")
        replies.flush()


def _set_timer(limit: float) -> None:
    # SIGALRM is left to its default, which ends the process even inside one long C call; 0 stops the timer
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, limit + GRACE if limit else 0.0)


def _end_with_parent(requests: int, wanted: bool) -> None:
    # During a request nothing comes on this pipe but its end, when the parent dies. With O_ASYNC Linux then sends
    # SIGIO, whose default ends the process even inside one long C call.
    if sys.platform == "linux":
        flags = fcntl.fcntl(requests, fcntl.F_GETFL)
        fcntl.fcntl(requests, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(requests, fcntl.F_SETFL, flags | os.O_ASYNC if wanted else flags & ~os.O_ASYNC)


def main() -> None:
    """Serve on stdin and stdout; whatever the upstream prints goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
