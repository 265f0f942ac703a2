"""``with`` for whatever holds something that is to be freed."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """`close` at the end of a ``with`` block, also when it ends in an error."""

    def close(self) -> None:
        """Free what it holds; twice is fine. By default nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
