"""Facts about a created environment, in words."""

from __future__ import annotations

from typing import Any

from llenvs.core.environment import Environment, EnvironmentSpec
from llenvs_cli.views.rewards import number


def success_rule(spec: EnvironmentSpec) -> str:
    """What counts as success: ``score >= 1``."""
    if spec.success_signal is None:
        return "not declared"
    return f"{spec.success_signal} >= {number(spec.success_threshold)}"


def describe_extractor(env: Environment[Any]) -> str:
    """How `env` finds the answer in a response; "" when it has no answer extractor."""
    from llenvs.core.extraction import Extractor, describe_extractors

    extractor = getattr(env, "extractor", None)
    if not isinstance(extractor, Extractor):
        return ""
    docs = {each.name: each.doc for each in describe_extractors()}
    settings = {key: value for key, value in extractor.to_spec().items() if key != "name"}
    shown = f" {settings}" if settings else ""
    return f"{extractor.name}{shown}: {docs.get(extractor.name, '')}".removesuffix(": ")
