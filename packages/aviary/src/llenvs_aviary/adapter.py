"""The adapter: which environments there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.options import EnvironmentOptions
from llenvs_aviary.catalogue import ALIASES, ENTRIES, Entry, require


class AviaryAdapter(Adapter):
    """The environments of aviary's packages, your own, and those of a server."""

    name = "aviary"
    description = "aviary: tool-calling environments (GSM8K with a calculator, HotPotQA, notebooks, your own)"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """All of them; those whose part of the upstream is missing too."""
        infos = [_info(name, entry) for name, entry in ENTRIES.items()]
        return [*infos, *(_info(alias, ENTRIES[name]) for alias, name in ALIASES.items())]

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """They differ from environment to environment."""
        return _entry(name).options

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            NotInstalled: the upstream's part is missing, with the command that installs it.
            InvalidOption: data that is not there or is no data, an object that is no environment.
            UpstreamFailed: what the upstream said when it could not make its tasks, with what they need.
        """
        entry = _entry(name)
        require(name, entry)
        from llenvs_aviary.environment import AviaryEnvironment

        return AviaryEnvironment(name, entry.description, _source(name, options), options)


def _entry(name: str) -> Entry:
    return ENTRIES[ALIASES.get(name, name)]


def _info(name: str, entry: Entry) -> EnvironmentInfo:
    metadata = {"needs": entry.needs} if entry.needs else {}
    return EnvironmentInfo(
        name, "aviary", entry.description, entry.category, is_multi_turn=True, metadata=metadata
    )


def _source(name: str, options: Any) -> Any:
    match name:  # each module imports its part of the upstream
        case "dummy":
            from llenvs_aviary.dummy import DummyTasks

            return DummyTasks(options)
        case "gsm8k":
            from llenvs_aviary.gsm8k import GSM8KTasks

            return GSM8KTasks(options)
        case "hotpotqa":
            from llenvs_aviary.hotpotqa import HotPotQATasks

            return HotPotQATasks(options)
        case "notebook":
            from llenvs_aviary.notebook import NotebookTasks

            return NotebookTasks(options)
        case "custom":
            from llenvs_aviary.custom import CustomTasks

            return CustomTasks(options)
        case "remote":
            from llenvs_aviary.remote import RemoteTasks

            return RemoteTasks(options)
        case _:
            from llenvs_aviary.papers import PaperTasks

            return PaperTasks(name, options)


ADAPTER = AviaryAdapter()
