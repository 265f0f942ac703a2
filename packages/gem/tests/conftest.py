"""Word lists: from NLTK_DATA, or from the folder `shared` beside the checkout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llenvs
from llenvs import Environment
from llenvs_gem.workers import WORKERS

sys.path.insert(0, str(Path(__file__).parent))  # for `gem_play` and `solvers`

_DATA = Path(__file__).parents[4] / "shared" / "data"


def _word_lists() -> str | None:
    for place in (os.environ.get("NLTK_DATA"), str(_DATA / "gem" / "nltk_data")):
        if place and Path(place, "corpora", "words", "en-basic").is_file():
            return place
    return None


@pytest.fixture(scope="session")
def words() -> str:
    """A folder in NLTK's layout with the corpus `words`."""
    folder = _word_lists()
    if folder is None:
        pytest.skip("no word lists here: name a folder that has the NLTK corpus words with NLTK_DATA")
    return folder


@pytest.fixture(scope="session")
def short_words(words: str) -> str:
    """The project's own word lists, which the recorded values belong to (the real corpus is far longer)."""
    if len(Path(words, "corpora", "words", "en-basic").read_text(encoding="utf-8").split()) != 199:
        pytest.skip("these values belong to the project's own word lists")
    return words


@pytest.fixture(scope="session")
def rows_folder() -> Path:
    """Small rows in the layout of well-known data sets."""
    folder = _DATA / "huggingface"
    if not (folder / "math_500_test.jsonl").is_file():
        pytest.skip("no rows here: the folder shared/data/huggingface beside the checkout")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _workers_live_on() -> Iterator[None]:
    """From test to test, however long the others take: a worker takes seconds to start."""
    WORKERS.acquire()
    yield
    WORKERS.release()


@pytest.fixture
def env() -> Iterator[Callable[..., Environment[Any]]]:
    """Makes environments of this adapter, and closes them."""
    made: list[Environment[Any]] = []

    def make(name: str, **options: Any) -> Environment[Any]:
        made.append(llenvs.make(f"gem/{name}", **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
