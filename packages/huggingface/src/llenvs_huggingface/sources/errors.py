"""What goes wrong when data are loaded, said for people."""

from __future__ import annotations

from collections.abc import Sequence

from llenvs.core.errors import LLEnvsError


class DataUnavailable(LLEnvsError):
    """A data set that is neither here nor reachable.

    Attributes: `repository`; `tried`, one line for each place that was looked into.
    """

    def __init__(self, repository: str, tried: Sequence[str], hint: str) -> None:
        self.repository = repository
        self.tried = tuple(tried)
        super().__init__(f"the data set {repository} could not be loaded; tried: {'; '.join(tried)}. {hint}")
