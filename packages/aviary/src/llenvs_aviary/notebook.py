"""A notebook whose cells the model writes and runs.

Imports the upstream.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.simulator import Snapshots
from llenvs_aviary.options import NotebookOptions
from llenvs_aviary.tasks import TaskSource
from llenvs_aviary.upstream import load, versions

_upstream: Any = load("aviary.envs.notebook.env")
_language: Any = load("aviary.envs.notebook.utils").NBLanguage


class QuietState(_upstream.NBEnvironmentState):
    """The upstream's state, whose kernel does not write its warnings on this process's stderr."""

    async def start_kernel(self) -> None:
        """See the upstream."""
        name = self.language.make_kernelspec()["name"]
        self._kernel_manager = _upstream.AsyncKernelManager(kernel_name=name)
        await self._kernel_manager.start_kernel(cwd=str(self.work_dir), stdout=DEVNULL, stderr=DEVNULL)


class OrderedNotebook(_upstream.NBEnvironment):
    """The upstream's environment, which lists files in the order of their names, not in the file system's."""

    STATE_CLS: ClassVar[Any] = QuietState

    def _list_dir(self, path: Path) -> Any:
        return _in_order(super()._list_dir(path))


def _in_order(listing: Any) -> Any:
    if isinstance(listing, dict):
        return {name: _in_order(listing[name]) for name in sorted(listing)}
    return sorted(listing)


class NotebookTasks(TaskSource):
    """One task: the notebook in a copy of `work_dir`. A kernel cannot be copied: older states are replayed to."""

    snapshots = Snapshots.NONE
    deterministic = False  # what code prints need not be the same twice
    supports_images = True

    def __init__(self, options: NotebookOptions) -> None:
        if options.work_dir is not None and not Path(options.work_dir).expanduser().is_dir():
            raise InvalidOption("work_dir", options.work_dir, "is no folder")
        self._options, self.task = options, options.task

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return {**versions("fhaviary", "aviary-notebook"), "use_docker": self._options.use_docker}

    def __len__(self) -> int:
        return 1

    def make(self, index: int) -> Any:
        """See `TaskSource`."""
        options = self._options
        return OrderedNotebook(
            # the upstream copies it, and begins in an empty one where there is none
            work_dir=Path(options.work_dir).expanduser() if options.work_dir else Path("no-such-folder-given"),
            language=_language.R if options.language == "r" else _language.PYTHON,
            run_notebook_on_edit=options.run_notebook_on_edit,
            cell_execution_timeout=options.cell_execution_timeout,
            use_docker=options.use_docker,
        )
