"""Environments whose answers are read in the format that the prompt asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownOption
from llenvs.core.registry import environment_registry
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.single_turn import SingleTurnEnvironment
from llenvs.inference.prompts import PromptBuilder

_READS_ANYTHING = ("composite", "native", "raw")


def build_environment(
    name: str, adapter: str | None, options: Mapping[str, Any], builder: PromptBuilder, container: Any = None
) -> tuple[Environment[Any], dict[str, Any]]:
    """The environment, and the options it was built with.

    Those are `options`, with the prompt's own answer extractor where the environment takes one and none is given.
    `container`: where it runs instead of in this process, as `environment_registry.get` takes it.
    """
    wanted = builder.answer_extractor
    if wanted is None or "answer_extractor" in options:
        return environment_registry.get(name, adapter, container=container, **options), dict(options)
    matched = {**options, "answer_extractor": wanted}
    try:
        # tried, not looked up: the adapter of an isolated environment need not be installed here
        return environment_registry.get(name, adapter, container=container, **matched), matched
    except UnknownOption as error:
        if error.name != "answer_extractor":
            raise
    return environment_registry.get(name, adapter, container=container, **options), dict(options)


def format_mismatch(environment: Environment[Any], builder: PromptBuilder) -> str | None:
    """A warning when the prompt asks for one answer format and the environment reads another, else None."""
    if isinstance(environment, SegmentedEnvironment):
        environment = environment.base_env
    wanted = builder.answer_extractor
    if wanted is None or not isinstance(environment, SingleTurnEnvironment):
        return None
    used = environment.extractor.name
    if used == wanted or used in _READS_ANYTHING:
        return None
    return (
        f"{environment.spec.id}: the prompt asks for answers that the extractor {wanted!r} reads, but the "
        f"environment reads them with {used!r}; set answer_extractor to {wanted!r}"
    )
