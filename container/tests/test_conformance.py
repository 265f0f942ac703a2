"""The conformance kit passes on an environment behind a server."""

from collections.abc import Iterator

import pytest
from probing import behind, config, serving

from llenvs import Action
from llenvs.testing import EnvironmentConformance, check_environment


def policy(state, rng) -> Action:
    """Finds the number now and then."""
    task = int(state.metadata.info["task_index"])
    return Action(str(7 * task + int(state.metadata.info["seed"]) + rng.choice([0, 0, 1])))


class TestBehindAServer(EnvironmentConformance):
    make = staticmethod(behind)
    actions = staticmethod(policy)


class TestBehindReplicas(EnvironmentConformance):
    make = staticmethod(lambda: behind(config(replicas=2)))
    actions = staticmethod(policy)


@pytest.fixture(scope="module")
def sealing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("--seal-key-file", str(tmp_path_factory.mktemp("seal") / "key")) as server:
        yield server.address


def test_sealed(sealing):
    report = check_environment(lambda: behind(config(runtime="url", url=sealing, env={})), actions=policy)
    assert report.ok
    skipped = {outcome.check for outcome in report.outcomes if outcome.skipped is not None}
    assert not skipped & {"second_instance", "success", "json_round_trip"}
