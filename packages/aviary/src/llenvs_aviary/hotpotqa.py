"""HotPotQA with search: the upstream's environment over the hub's questions or your own.

Imports the upstream.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import tenacity

from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs_aviary.copying import copied_with_schemas_shared
from llenvs_aviary.options import HotPotQAOptions
from llenvs_aviary.pages import EpisodePages, PageLibrary
from llenvs_aviary.tasks import TaskSource, selected
from llenvs_aviary.upstream import load, quiet_datasets, versions

_upstream: Any = load("aviary.envs.hotpotqa.env")
_core: Any = load()

QUESTIONS = "questions.jsonl"
"""The file with the rows in data_dir."""
PAGES = "wiki_cache.json"
"""The file with the pages in data_dir."""


class OwnHotPotQAEnv(_upstream.HotPotQAEnv):
    """The upstream's environment, with pages of its own and an evaluation mode that counts.

    Attributes:
        correct, exact: whether an answer was submitted that is right by the mode, and right to the letter.
        unreachable: what kept the last search from the network.
    """

    correct = False
    exact = False
    unreachable: BaseException | None = None

    def __init__(self, *args: Any, pages: PageLibrary, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wiki_cache = EpisodePages(pages)  # hides the one that all objects of the upstream's class share

    @functools.wraps(_upstream.HotPotQAEnv.search)
    async def search(self, entity: str) -> Any:
        """See the upstream."""
        try:
            return await super().search(entity)
        except (tenacity.RetryError, httpx.HTTPError) as error:
            last = error.last_attempt.exception() if isinstance(error, tenacity.RetryError) else error
            self.unreachable = last or error
            raise

    @functools.wraps(_upstream.HotPotQAEnv.lookup)
    async def lookup(self, keyword: str) -> Any:
        """See the upstream, which would give a plain function to another thread."""
        return super().lookup(keyword)

    async def calculate_answer_reward(self, answer: str | None) -> float:
        """See the upstream, which takes its evaluation mode for the question, and so always uses "contains"."""
        if answer is None:
            return float(self.incorrect_reward)
        right = await self._matches(answer, self.evaluation_mode)
        self.correct = self.correct or right
        self.exact = self.exact or await self._matches(answer, _core.EvalAnswerMode.EXACT)
        return float(self.correct_reward if right else self.incorrect_reward)

    async def _matches(self, answer: str, mode: Any) -> bool:
        given = _upstream.normalize_answer(answer)
        return bool(await _core.eval_answer(given, self.normalized_correct_answer, eval_mode=mode))


class HotPotQATasks(TaskSource):
    """The questions of one split, or of a file."""

    success_signal = "correct"
    branching = "copy"  # its tools are methods, its state is plain data

    def __init__(self, options: HotPotQAOptions) -> None:
        folder = None if options.data_dir is None else Path(options.data_dir).expanduser()
        self._options, self._library = options, _library(options, folder)
        self.records = self.waits = self._library.online
        config = _upstream.HotPotQAEnvConfig(
            correct_reward=options.correct_reward,
            incorrect_reward=options.incorrect_reward,
            tool_failure_reward=options.tool_failure_reward,
            difficulty_level=None if options.difficulty_level is None else set(options.difficulty_level),
            proxy=options.proxy,
            evaluation_mode=options.evaluation_mode,
        )
        if folder is not None:
            rows = _rows(folder / QUESTIONS)

            class FiledDataset(_upstream.HotPotQADataset):
                @staticmethod
                def load_raw(split: str, hf_dataset: str = "") -> list[dict[str, Any]]:
                    return rows

            data = FiledDataset(options.split, config)
        else:
            try:
                with quiet_datasets():
                    data = _upstream.HotPotQADataset(options.split, config)
            except Exception as error:
                doing = "loading hotpotqa/hotpot_qa from the hub of Hugging Face (name local files with data_dir)"
                raise UpstreamFailed("aviary/hotpotqa", doing, error) from error
        self._data, self._config = data.data, data.config
        self._order = selected(len(self._data), options.size, options.seed)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return {
            **versions("fhaviary", "aviary-hotpotqa"),
            "split": self._options.split if self._options.data_dir is None else None,
            "source": "hotpotqa/hotpot_qa" if self._options.data_dir is None else "files",
            "pages": self._library.digest if self._library.filed else None,
            "online": self._library.online,
        }

    def __len__(self) -> int:
        return len(self._order)

    def make(self, index: int) -> Any:
        """See `TaskSource`."""
        config = self._config
        return OwnHotPotQAEnv(
            *self._data[self._order[index]],
            correct_reward=config.correct_reward,
            incorrect_reward=config.incorrect_reward,
            tool_failure_reward=config.tool_failure_reward,
            evaluation_mode=config.evaluation_mode,
            proxy=config.proxy,
            pages=self._library,
        )

    def copied(self, env: Any) -> Any:
        """See `TaskSource`."""
        return copied_with_schemas_shared(env)

    def size_of(self, env: Any) -> int:
        """See `TaskSource`."""
        return 8192 + sys.getsizeof(env.state.page) + sum(map(sys.getsizeof, env.state.lookup_results))

    def truth(self, env: Any) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return {"answer": env.normalized_correct_answer, "submitted": env.state.answer}

    def outcome(self, env: Any) -> Mapping[str, float]:
        """See `TaskSource`."""
        given = env.state.answer is not None
        return {"correct": float(env.correct), "exact_match": float(env.exact), "submitted": float(given)}

    def failure(self, env: Any) -> BaseException | None:
        """See `TaskSource`."""
        failure: BaseException | None = env.unreachable
        env.unreachable = None
        return failure

    def heard(self, env: Any) -> Any:
        """See `TaskSource`."""
        return env.wiki_cache.heard()

    def tell(self, env: Any, heard: Any) -> None:
        """See `TaskSource`."""
        env.wiki_cache.tell(heard)


def _library(options: HotPotQAOptions, folder: Path | None) -> PageLibrary:
    path = None if options.pages is None else Path(options.pages).expanduser()
    if path is None and folder is not None and (folder / PAGES).is_file():
        path = folder / PAGES
    online = path is None if options.online is None else options.online
    if path is not None:
        return PageLibrary.read(path, online)
    if not online:
        raise InvalidOption("online", False, "leaves nothing to search in", valid="true, or pages=... as a file")
    return PageLibrary({}, online)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of questions.

    Raises:
        InvalidOption: naming the file and the line.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        problem = f"{QUESTIONS} cannot be read ({error.strerror})"
        valid = f"a folder with {QUESTIONS}"
        raise InvalidOption("data_dir", str(path.parent), problem, valid=valid) from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidOption("data_dir", str(path), f"line {number} is no JSON ({error})") from None
        problem = _problem(row)
        if problem:
            raise InvalidOption("data_dir", line, f"line {number} of {path.name}: {problem}")
        rows.append({"level": None, **row})
    if not rows:
        raise InvalidOption("data_dir", str(path), "holds no questions")
    return rows


def _problem(row: Any) -> str:
    if not isinstance(row, dict):
        return "must be an object with id, question, answer and level"
    if not isinstance(row.get("id"), str) or not re.fullmatch(r"[0-9a-f]{24}", row["id"]):
        return "id must be a text of 24 hexadecimal digits"
    if not isinstance(row.get("question"), str):
        return "question must be a text"
    if not isinstance(row.get("answer"), str | float):
        return "answer must be a text"
    return ""
