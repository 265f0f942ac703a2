from collections.abc import Iterator

import pytest

from llenvs_reasoning_gym.worker import WORKER


@pytest.fixture(scope="session", autouse=True)
def _one_worker() -> Iterator[None]:
    """Keep the worker between tests: starting it takes seconds."""
    WORKER.acquire()
    yield
    WORKER.release()
