"""Generations kept on disk, so that nothing is paid for twice.

An answer is found again by everything that decides it: the backend with what of it matters (model, address,
default sampling, further parameters), the whole request, and how many samples were asked for. Requests that are
sampled without a seed have many right answers: the k-th time that one cache is asked the same, it gives the k-th
answer that was kept, so samples stay different from each other and a repeated run sees those of the first.

One file for each answer, ``<folder>/<2 digits>/<sha256>.<k>.json``, written in one step. Several processes may use
one folder.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import logging
import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from llenvs.core.encoding import canonical, dumps, loads
from llenvs.core.errors import EncodingFailed, InvalidOption
from llenvs.core.generation import FinishReason, Generation
from llenvs.core.message import ChatMessage
from llenvs.inference.request import GenerationRequest

_FORMAT = 1
FROM_CACHE = "from_cache"
"""Metadata of a generation that was not generated now; its cost is 0, its tokens are those it once took."""

_log = logging.getLogger(__name__)


class GenerationCache:
    """Keeps what backends answer.

    Args:
        folder: made when it is missing. Delete it, or files in it, to forget.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise InvalidOption("cache", folder, "must be the path of a folder")
        self.folder = Path(folder).expanduser()
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidOption("cache", folder, "is a file; must be the path of a folder")
        self._lock = threading.Lock()
        self._next: defaultdict[str, int] = defaultdict(int)
        self._given_back: defaultdict[str, list[int]] = defaultdict(list)

    @classmethod
    def of(cls, value: GenerationCache | str | os.PathLike[str] | None) -> GenerationCache | None:
        """A cache from its folder; one that is made already is kept, and so is None."""
        return value if value is None or isinstance(value, cls) else cls(value)  # type: ignore[arg-type]

    async def answers(
        self,
        identity: Mapping[str, Any],
        request: GenerationRequest,
        n: int,
        generate: Callable[[], Awaitable[Sequence[Generation]]],
        *,
        repeatable: bool,
    ) -> Sequence[Generation]:
        """`n` generations: those that are kept, else what `generate` gives, kept from now on.

        Args:
            identity: what of the backend decides the answers.
            request: what is asked.
            n: samples.
            generate: asks the model.
            repeatable: whether asking again gives the same answer (greedy, or with a seed).
        """
        key = key_of(identity, request, n)
        number = 0 if repeatable else self._take(key)
        path = self.folder / key[:2] / f"{key}.{number}.json"
        try:
            kept = await asyncio.to_thread(_read, path)
            if kept is not None and len(kept) == n:
                return kept
            generations = tuple(await generate())
        except BaseException:
            if not repeatable:
                self._give_back(key, number)
            raise
        if all(each.finish_reason is not FinishReason.CANCELLED for each in generations):
            await asyncio.to_thread(_write, path, generations)
        return generations

    def _take(self, key: str) -> int:
        with self._lock:
            if self._given_back[key]:
                return heapq.heappop(self._given_back[key])
            self._next[key] += 1
            return self._next[key] - 1

    def _give_back(self, key: str, number: int) -> None:
        with self._lock:
            heapq.heappush(self._given_back[key], number)


def key_of(identity: Mapping[str, Any], request: GenerationRequest, n: int) -> str:
    """SHA-256 (hexadecimal) of everything that decides the answers."""
    asked = {field.name: getattr(request, field.name) for field in fields(request)}
    asked["messages"] = tuple(_said(message) for message in request.messages)
    asked["sampling"] = request.sampling.model_dump()
    data = {"format": _FORMAT, "backend": dict(identity), "request": asked, "n": n}
    return hashlib.sha256(canonical(data).encode("utf-8")).hexdigest()


def _said(message: ChatMessage) -> ChatMessage:
    # whether an earlier turn came out of the cache does not matter for this one
    metadata = {key: value for key, value in message.metadata.items() if key != FROM_CACHE}
    return replace(message, metadata=metadata)


def _read(path: Path) -> tuple[Generation, ...] | None:
    try:
        data = loads(path.read_bytes())
        generations = tuple(data["generations"])
    except FileNotFoundError:
        return None
    except (EncodingFailed, KeyError, TypeError, ValueError) as error:
        _log.warning("cache: %s cannot be read and is asked anew (%s)", path, error)
        return None
    return tuple(
        replace(
            each,
            usage=each.usage if each.usage.cost is None else replace(each.usage, cost=0.0),
            metadata={**each.metadata, FROM_CACHE: True},
        )
        for each in generations
    )


def _write(path: Path, generations: Sequence[Generation]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(dumps({"format": _FORMAT, "generations": tuple(generations)}))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
