"""Pages of an encyclopaedia: from a file, or from the network and then remembered."""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs_aviary.copying import Shared

_REMEMBERED = 256
"""Pages of the network kept by an environment, the most recently used."""


class PageNotAtHand(LookupError):
    """No page of these search words is in the file, and the network is not to be asked."""


class PageLibrary(Shared):
    """The pages that all episodes of an environment share. Safe under threads.

    Args:
        filed: search words (blanks written as +) to HTML.
        online: whether the network may be asked for other pages.
    """

    def __init__(self, filed: Mapping[str, str], online: bool) -> None:
        self.filed, self.online = filed, online
        self._remembered: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def read(cls, path: Path, online: bool) -> PageLibrary:
        """The library in a JSON file.

        Raises:
            InvalidOption: the file cannot be read, or holds something else.
        """
        try:
            filed = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidOption("pages", str(path), f"cannot be read ({error})") from None
        if not isinstance(filed, dict) or not all(isinstance(page, str) for page in filed.values()):
            valid = 'a JSON object such as {"Ada+Lovelace": "<html>...</html>"}'
            raise InvalidOption("pages", str(path), "holds no pages", valid=valid)
        return cls(filed, online)

    @property
    def digest(self) -> str:
        """SHA-256 of the filed pages, by which two libraries are told apart."""
        text = json.dumps(self.filed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def remembered(self, words: str) -> str | None:
        """A page that the network gave lately."""
        with self._lock:
            page = self._remembered.get(words)
            if page is not None:
                self._remembered.move_to_end(words)
            return page

    def remember(self, words: str, page: str) -> None:
        """Keep a page that the network gave."""
        with self._lock:
            self._remembered[words] = page
            self._remembered.move_to_end(words)
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)


class EpisodePages(MutableMapping[str, str]):
    """What the upstream takes for its cache of pages: those of a library, as one episode sees them.

    Pages of the network belong to the episode: each is noted in `heard` when it is used, so that a replay gets
    the same.
    """

    def __init__(self, library: PageLibrary) -> None:
        self._library = library
        self._given: dict[str, str] = {}
        self._used: dict[str, str] = {}

    def heard(self) -> dict[str, bytes]:
        """Pages of the network that were used since this was last called, compressed."""
        used, self._used = self._used, {}
        return {words: zlib.compress(page.encode("utf-8", "surrogatepass")) for words, page in used.items()}

    def tell(self, heard: Mapping[str, bytes]) -> None:
        """Use these pages instead of the network's from now on."""
        for words, page in heard.items():
            self._given[words] = zlib.decompress(page).decode("utf-8", "surrogatepass")

    def __getitem__(self, words: str) -> str:
        if words in self._library.filed:
            return self._library.filed[words]
        page = self._given.get(words) or self._library.remembered(words)
        if page is None:
            if not self._library.online:
                raise PageNotAtHand(f"no page for {words.replace('+', ' ')!r} is at hand")
            raise KeyError(words)  # the upstream then asks the network
        self._used[words] = page
        return page

    def __setitem__(self, words: str, page: str) -> None:
        self._library.remember(words, page)
        self._used[words] = page

    def __delitem__(self, words: str) -> None:
        raise TypeError("pages are not taken away")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._library.filed)

    def __len__(self) -> int:
        return len(self._library.filed)
