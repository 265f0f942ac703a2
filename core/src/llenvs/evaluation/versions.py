"""What a run was made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from llenvs.core.environment import EnvironmentSpec
from llenvs.core.registry import ENTRY_POINT_GROUP as ADAPTERS
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.versions import made_of
from llenvs.inference.backends import ENTRY_POINT_GROUP as BACKENDS


@runtime_checkable
class RunsElsewhere(Protocol):
    """An environment behind a server, whose Python has versions of its own."""

    spec: EnvironmentSpec

    @property
    def server_versions(self) -> Mapping[str, Any]:
        """`llenvs.core.versions.made_of` there."""
        ...


def run_versions(objects: Iterable[object]) -> dict[str, Any]:
    """Time, Python, platform, and the versions of the distributions that the classes of `objects` come from,
    of what these require, and of LLEnvs; of environments behind servers the same under ``isolated``, in order."""
    objects = list(objects)
    objects += [each.base_env for each in objects if isinstance(each, SegmentedEnvironment)]
    elsewhere = [each for each in objects if isinstance(each, RunsElsewhere)]
    isolated = [{"environment": each.spec.id, **each.server_versions} for each in elsewhere]
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        **made_of(objects, (ADAPTERS, BACKENDS)),
        **({"isolated": isolated} if isolated else {}),
    }
