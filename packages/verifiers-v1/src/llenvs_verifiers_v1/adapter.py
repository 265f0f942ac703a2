"""The adapter: which environments there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs_verifiers_v1.catalogue import installed_tasksets
from llenvs_verifiers_v1.options import VerifiersV1Options


class VerifiersV1Adapter(Adapter):
    """Installed tasksets by name, alone or with an environment that pairs them with seats (``env+taskset``)."""

    name = "verifiers_v1"
    description = "Verifiers v1 (0.4): any installed taskset or environment, stepped from any state"
    options = VerifiersV1Options

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """Tasksets at hand; imports none."""
        return [_info(name) for name in installed_tasksets()]

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of `name`; any name may be that of a taskset."""
        return _info(name)

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: no taskset of this name, with the nearest names and how to get one.
            NotInstalled: Verifiers is missing, or is another release.
            UnknownOption, InvalidOption: parameters that the taskset does not take, or a seat without a model.
            UnsupportedEnvironment: tasks that need containers, a harness of its own, tools that cannot be started.
            UpstreamFailed: the taskset's own code raised.
        """
        from llenvs_verifiers_v1.loading import kept_in, require_upstream

        require_upstream()
        with kept_in():
            from llenvs_verifiers_v1.environment import VerifiersV1Environment

        return VerifiersV1Environment(name, options)


def _info(name: str) -> EnvironmentInfo:
    return EnvironmentInfo(name, "verifiers_v1", "an installed taskset", "taskset", is_multi_turn=True)


ADAPTER = VerifiersV1Adapter()
