"""The promises of the contract."""

from __future__ import annotations

from typing import Any

import pytest

from llenvs.testing import check_environment


@pytest.mark.parametrize(
    ("name", "options", "second_process"),
    [
        ("vf_sums", {}, False),
        ("vf_tools", {}, False),
        ("vf_tools", {"args": {"stateful": True}}, True),
        ("vf_guess", {"branching": "copy"}, False),
        ("vf_mixed", {"max_live": 2}, False),
    ],
)
def test_conformance(name: str, options: dict[str, Any], second_process: bool) -> None:
    report = check_environment(f"verifiers/{name}", options=options, second_process=second_process)
    assert not {"threads", "odd_actions"} & set(report.skipped), str(report)
