"""What a segmented run was made with: what its base environment is made of, too."""

from __future__ import annotations

from typing import Any

from llenvs.core import SegmentedEnvironment, SentenceSegmenter
from llenvs.evaluation.versions import run_versions


def test_the_versions_of_the_base_environment_are_told(addition: type[Any]) -> None:
    class Elsewhere(addition):  # type: ignore[misc]
        server_versions = {"python": "3.9.1", "distributions": {"old-benchmark": "1.0"}}  # noqa: RUF012

    (isolated,) = run_versions([SegmentedEnvironment(Elsewhere(), SentenceSegmenter())])["isolated"]
    assert isolated == {"environment": "toys/addition", **Elsewhere.server_versions}
    assert "isolated" not in run_versions([SegmentedEnvironment(addition(), SentenceSegmenter())])
