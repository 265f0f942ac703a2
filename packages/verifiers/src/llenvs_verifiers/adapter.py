"""The adapter: which environments there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs_verifiers.catalogue import BUILT_IN, installed_modules
from llenvs_verifiers.options import VerifiersOptions


class VerifiersAdapter(Adapter):
    """Installed environment modules by name, single files by path, and a few classes of the upstream."""

    name = "verifiers"
    description = "Verifiers, classic API (0.3.1): any installed environment module, stepped from any state"
    options = VerifiersOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """Environment modules at hand, then the upstream's own classes; imports none."""
        modules = [_info(name, "an installed environment module", "module") for name in installed_modules()]
        return [*modules, *(_info(name, text, "class") for name, text in BUILT_IN.items())]

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of `name`; any name may be that of a module."""
        listed = {info.name: info for info in self.list_environments()}
        return listed.get(name) or _info(name, "an environment module", "module")

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: no module of this name, with the nearest names and how to get one.
            NotInstalled: Verifiers is missing, or a release without the classic API.
            UnknownOption, InvalidOption: arguments that the module does not take, or options that do not fit it.
            UnsupportedEnvironment: a module whose episodes run elsewhere (the vendor's cloud) or in its own loop.
            UpstreamFailed: the module's own code raised.
        """
        from llenvs_verifiers.loading import require_upstream

        require_upstream()
        from llenvs_verifiers.quiet import kept_in

        with kept_in():
            from llenvs_verifiers.environment import VerifiersEnvironment

        return VerifiersEnvironment(name, options)


def _info(name: str, description: str, category: str) -> EnvironmentInfo:
    return EnvironmentInfo(name, "verifiers", description, category, is_multi_turn=True)


ADAPTER = VerifiersAdapter()
