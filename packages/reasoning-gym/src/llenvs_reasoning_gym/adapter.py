"""The adapter: what ReasoningGym has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.options import EnvironmentOptions
from llenvs_reasoning_gym.catalogue import (
    CATEGORY,
    COMPOSITE,
    DESCRIPTION,
    ISOLATED,
    UPSTREAM_RELEASE,
    WITHOUT_CURRICULUM,
    names,
)


class ReasoningGymAdapter(Adapter):
    """105 generators of reasoning tasks and `composite`, which mixes them."""

    name = "reasoning_gym"
    description = "ReasoningGym: 105 procedurally generated reasoning tasks with verifiable answers"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """All environments by category and name; imports nothing of the upstream."""
        return [_info(name) for name in names()]

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """Our options and the generator's own; imports the upstream.

        Raises:
            UnknownEnvironment: with the nearest names.
        """
        from llenvs_reasoning_gym.options import options_for

        return options_for(self.info(name).name)

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment, UnknownOption, InvalidOption.
        """
        from llenvs_reasoning_gym.environment import ReasoningGymEnvironment

        return ReasoningGymEnvironment(self.info(name).name, options)


def _info(name: str) -> EnvironmentInfo:
    metadata: dict[str, Any] = {"reasoning_gym": UPSTREAM_RELEASE, "curriculum": name not in WITHOUT_CURRICULUM}
    if name in ISOLATED:
        metadata["isolated"] = ISOLATED[name]
    description = "a weighted mix of other datasets" if name == COMPOSITE else DESCRIPTION[name]
    return EnvironmentInfo(name, "reasoning_gym", description, CATEGORY.get(name, COMPOSITE), metadata=metadata)


ADAPTER = ReasoningGymAdapter()
