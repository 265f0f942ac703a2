"""The word lists of Wordle, Hangman and WordSearch: the NLTK corpus `words`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, LLEnvsError

COMMAND = "python -m nltk.downloader words"
"""What a user runs to get the corpus."""
_LISTS = ("en", "en-basic")


class CorpusMissing(LLEnvsError):
    """The corpus is in none of the places that were looked at; the message says how to get it."""


def find_corpus(nltk_data: str | None) -> Path:
    """The folder with the lists `en` and `en-basic`.

    Args:
        nltk_data: a folder in NLTK's layout; None for NLTK's own places, NLTK_DATA among them.

    Raises:
        InvalidOption: `nltk_data` holds no such corpus.
        CorpusMissing: NLTK's places hold none.
    """
    if nltk_data is not None:
        folder = Path(nltk_data).expanduser() / "corpora" / "words"
        if not _is_corpus(folder):
            raise InvalidOption("nltk_data", nltk_data, "has no corpora/words with the lists en and en-basic")
        return folder
    import nltk

    places = [Path(place) for place in nltk.data.path]
    for place in places:
        folder = place / "corpora" / "words"
        if _is_corpus(folder):
            return folder
    raise CorpusMissing(
        f"this game needs the NLTK corpus 'words', which is not here; run: {COMMAND} (it is downloaded once), or "
        "name a folder that has it with nltk_data=... or NLTK_DATA"
    )


def _is_corpus(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _LISTS)


class Words:
    """Stands for ``nltk.corpus.words``: the lists of one folder, each read once. Nobody may change them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def words(self, fileids: str = "en") -> list[str]:
        """The words of a list, in its order."""
        return _read(str(self._folder), fileids)


@lru_cache(maxsize=8)
def _read(folder: str, name: str) -> list[str]:
    from nltk.corpus.reader.wordlist import WordListCorpusReader

    reader: Any = WordListCorpusReader(folder, list(_LISTS))
    return list(reader.words(name))
