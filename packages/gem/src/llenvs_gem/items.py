"""Questions with their ground truth: rows of a data set, or items of reasoning_gym."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llenvs.core.encoding import loads
from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs.core.message import ImageContent
from llenvs_gem.catalogue import Entry, Kind
from llenvs_gem.images import image_contents
from llenvs_gem.options import DatasetOptions, ImageDatasetOptions, ReasoningOptions
from llenvs_gem.rows import load_rows, shuffled
from llenvs_gem.upstream import module
from llenvs_gem.workers import WORKERS, WorkerStopped

_ITEM_LIMIT = 300.0  # seconds; some generators search for long


class Item(NamedTuple):
    """One question; `truth` is what its judge needs, plain data."""

    question: str
    truth: Any
    images: tuple[ImageContent, ...] = ()


class Items(ABC):
    """The questions of an environment. Safe under threads."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def item(self, index: int) -> Item:
        """Question `index`, the same at each call and in each process."""

    def close(self) -> None:
        """Free what it holds. Called once."""


class RowItems(Items):
    """Rows of a data set, by their own index unless a seed shuffles them.

    Raises:
        InvalidOption, UpstreamFailed: see `load_rows`; a column that the rows lack.
    """

    def __init__(self, entry: Entry, options: DatasetOptions) -> None:
        settings = entry.settings
        split = options.split
        if split is None and options.dataset is None:
            split = settings["split"]
        self._rows = load_rows(options.dataset, split, settings["dataset"], f"gem/{entry.id}")
        count = len(self._rows)
        self._order: Sequence[int] = range(count) if options.shuffle is None else shuffled(count, options.shuffle)
        if options.size is not None:
            self._order = self._order[: options.size]
        self._question = options.question_key or settings["question_key"]
        self._answer = options.answer_key or settings["answer_key"]
        self._image: str | None = None
        if isinstance(options, ImageDatasetOptions):
            self._image = options.image_key or settings["image_key"]
        self._prompt = _qa_prompt() if entry.kind in (Kind.QA, Kind.LOGIC) else str
        if self._order:
            self.item(0)  # what is wrong with the columns is said here and now

    def __len__(self) -> int:
        return len(self._order)

    def item(self, index: int) -> Item:
        """See `Items`.

        Raises:
            InvalidOption: the row lacks a column.
        """
        row = self._rows[self._order[index]]
        question = self._column(row, "question_key", self._question)
        truth = self._column(row, "answer_key", self._answer)
        images = image_contents(self._column(row, "image_key", self._image), self._image) if self._image else ()
        return Item(self._prompt(str(question)), truth, images)

    @staticmethod
    def _column(row: Mapping[str, Any], option: str, name: str) -> Any:
        if name not in row:
            raise InvalidOption(option, name, "is no column of this data set", valid=", ".join(map(str, row)))
        return row[name]


class ReasoningItems(Items):
    """Items of a data set of reasoning_gym, made in a worker."""

    def __init__(self, entry: Entry, options: ReasoningOptions) -> None:
        self._environment = f"gem/{entry.id}"
        self.recipe = {"name": entry.id.removeprefix("rg:"), "size": options.size, "seed": options.seed}
        WORKERS.acquire()

    def __len__(self) -> int:
        size: int = self.recipe["size"]  # type: ignore[assignment]
        return size

    def item(self, index: int) -> Item:
        """See `Items`.

        Raises:
            UpstreamFailed: it could not be made.
        """
        doing = f"making item {index}"
        request = {"do": "item", **self.recipe, "index": index}
        try:
            _, raw = WORKERS.request(request, limit=_ITEM_LIMIT, doing=doing, environment=self._environment)
        except WorkerStopped as stopped:
            raise UpstreamFailed(self._environment, doing, str(stopped)) from None
        entry = loads(raw)
        return Item(entry["question"], entry)

    def close(self) -> None:
        """Let the workers go."""
        WORKERS.release()


def _qa_prompt() -> Callable[[str], str]:
    """The upstream's wording around the questions of qa and logic."""
    apply_prompt = module("gem.envs.qa_env").apply_prompt

    def prompt(question: str) -> str:
        text: str = apply_prompt({"question": question}, "question")["question"]
        return text

    return prompt
