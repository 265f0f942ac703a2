import sys
from pathlib import Path

import pytest

from llenvs import environment_registry

# `arithmetic` is imported by name: here and in worker processes
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _arithmetic_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from arithmetic import ArithmeticAdapter

    monkeypatch.setitem(environment_registry._registered, "arithmetic", ArithmeticAdapter())
