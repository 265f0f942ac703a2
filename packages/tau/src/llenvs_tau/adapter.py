"""The adapter: the domains of tau2-bench and their splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.options import EnvironmentOptions
from llenvs_tau.catalogue import DOMAINS, SOLO_DOMAINS, domain_names, split_name
from llenvs_tau.options import TauOptions


class TauAdapter(Adapter):
    """``domain`` or ``domain:split``."""

    name = "tau"
    description = "tau2-bench: customer service with tools, a policy and a simulated user"
    options: ClassVar[type[EnvironmentOptions]] = TauOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """All domains and, for those of the wheel, their splits; imports nothing of the upstream."""
        return [
            self.info(name if split is None else f"{name}:{split}")
            for name in domain_names()
            for split in (None, *DOMAINS.get(name, ("", ()))[1])
        ]

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of `name`.

        Raises:
            UnknownEnvironment: with the nearest names.
        """
        domain, split = split_name(name)
        description = DOMAINS.get(domain, ("a domain of the installed release", ()))[0]
        if split is not None:
            description = f"{description} ({split})"
        metadata = {"solo": domain in SOLO_DOMAINS}
        return EnvironmentInfo(name, self.name, description, domain, is_multi_turn=True, metadata=metadata)

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            NotInstalled, WrongPackage: tau2-bench is missing, with the command that installs it.
            UnknownEnvironment: no such domain or split.
            InvalidOption: the domain cannot be played so.
        """
        from llenvs_tau.environment import TauEnvironment

        return TauEnvironment(*split_name(name), options)


ADAPTER = TauAdapter()
