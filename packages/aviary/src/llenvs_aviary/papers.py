"""LAB-Bench and LFRQA: questions over papers, by the upstream's own agent tools."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from llenvs.core.errors import UpstreamFailed
from llenvs_aviary.catalogue import ALIASES, ENTRIES
from llenvs_aviary.custom import OpenTasks, dataset_tasks
from llenvs_aviary.options import PaperOptions
from llenvs_aviary.upstream import load, versions

_LABBENCH: Mapping[str, tuple[str, str]] = {
    "litqa2": ("litqa2", "LitQA2"),
    "figqa": ("figqa", "FigQA"),
    "figqa2": ("figqa-text", "FigQA2"),
    "figqa-text": ("figqa-text", "FigQA"),
    "tableqa": ("tableqa", "TableQA"),
    "tableqa2": ("tableqa-text", "TableQA2"),
    "tableqa-text": ("tableqa-text", "TableQA"),
}
"""Name -> the upstream's registered name, which decides for text or pictures, and the data. The upstream's own
default data is LitQA2 for all names with text and FigQA for all others, whatever the name says; the sets of
LAB-Bench 2 hold no pictures, so that its classes for pictures refuse them."""


class PaperTasks(OpenTasks):
    """A data set of the upstream that needs papers and language models.

    Its environment objects say themselves how they are copied. Another process replays the actions, which asks
    the language models again.
    """

    branching = "copy"

    def __init__(self, name: str, options: PaperOptions) -> None:
        meant = ALIASES.get(name, name)
        entry = ENTRIES[meant]
        keywords = dict(options.dataset_options or {})
        registered = meant
        if meant in _LABBENCH:
            registered, data_name = _LABBENCH[meant]
            keywords.setdefault("dataset", data_name)
            # else the upstream shuffles the rows anew in each process
            keywords["read_data_kwargs"] = {"randomize": False, **(keywords.get("read_data_kwargs") or {})}
        doing = f"making its data set (it needs {entry.needs}; options for it go into dataset_options)"
        try:
            load(str(entry.module))  # which registers its data sets
            # "SEED_USING_QUESTION" takes Python's hash of a text, which is another in each process
            load("aviary.utils").hash = _stable_hash
            data = load().TaskDataset.from_name(registered, **keywords)
        except Exception as error:
            raise UpstreamFailed(f"aviary/{name}", doing, error) from error
        super().__init__(f"aviary/{name}", *dataset_tasks(data, options.size), options)
        self._versions = versions("fhaviary", f"aviary-{entry.extra}", "paper-qa")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return self._versions

    def copied(self, env: Any) -> Any:
        """See `TaskSource`; the upstream's copy of a task of LFRQA forgets the judge."""
        made = copy.deepcopy(env)
        if hasattr(env, "pairwise_eval_llm"):
            made.pairwise_eval_llm = env.pairwise_eval_llm
        return made


def _stable_hash(value: Any) -> int:
    """A hash of a text that is the same in every process."""
    if not isinstance(value, str):
        return hash(value)
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "big", signed=True)
