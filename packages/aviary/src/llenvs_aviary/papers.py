"""LAB-Bench and LFRQA: questions over papers, by the upstream's own agent tools."""

from __future__ import annotations

from typing import Any

from llenvs.core.errors import UpstreamFailed
from llenvs.core.simulator import Snapshots
from llenvs_aviary.catalogue import ALIASES, ENTRIES
from llenvs_aviary.custom import OpenTasks, dataset_tasks
from llenvs_aviary.options import PaperOptions
from llenvs_aviary.upstream import load


class PaperTasks(OpenTasks):
    """A data set of the upstream that needs papers and language models. Older states are replayed to."""

    snapshots = Snapshots.NONE

    def __init__(self, name: str, options: PaperOptions) -> None:
        entry = ENTRIES[ALIASES.get(name, name)]
        doing = f"making its data set (it needs {entry.needs}; options for it go into dataset_options)"
        try:
            load(str(entry.module))  # which registers its data sets
            kind: Any = load().TaskDataset
            data = kind.from_name(ALIASES.get(name, name), **(options.dataset_options or {}))
        except Exception as error:
            raise UpstreamFailed(f"aviary/{name}", doing, error) from error
        super().__init__(f"aviary/{name}", *dataset_tasks(data, options.size), options)
