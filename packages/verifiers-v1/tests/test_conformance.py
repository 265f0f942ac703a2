"""The promises of the contract."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.testing import check_environment


@pytest.mark.parametrize(
    ("name", "options", "second_process"),
    [("v1_doubler", {}, True), ("v1_doubler", {"mode": "episode"}, False), ("v1_guesser", {"max_live": 4}, False)],
)
def test_conformance(name: str, options: dict[str, Any], second_process: bool) -> None:
    report = check_environment(f"verifiers_v1/{name}", options=options, second_process=second_process, tasks=2)
    assert not {"threads", "odd_actions"} & set(report.skipped), str(report)
