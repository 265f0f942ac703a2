"""Configurations that contradict themselves are refused."""

import pytest

from llenvs.container import ContainerConfig
from llenvs.container.create import container_options
from llenvs.core.errors import InvalidOption


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        # without runtime: venv these would serve the release that is installed here
        (
            {"packages": ["reasoning-gym==0.1.23"]},
            "packages goes with runtime 'venv', and means nothing to 'process'",
        ),
        ({"runtime": "docker", "image": "x", "python": "3.12"}, "python goes with runtime 'venv'"),
        ({"runtime": "venv", "image": "x"}, "image goes with runtime 'docker'"),
        ({"limits": {"memory": "1g"}}, "limits goes with runtime 'docker'"),
        ({"volumes": {"/a": "/b"}}, "volumes goes with runtime 'docker'"),
        ({"url": "http://localhost:1"}, "url goes with runtime 'url'"),
        ({"runtime": "url", "url": "http://localhost:1", "env": {"A": "1"}}, "env goes with runtime 'process' or"),
        ({"runtime": "url"}, "runtime 'url' needs url"),
        ({"runtime": "docker"}, "runtime 'docker' needs image"),
        ({"runtime": "docker", "image": "x", "port": 8080, "replicas": 2}, "port is for one server"),
    ],
)
def test_contradictions(fields, words):
    with pytest.raises(InvalidOption, match=f"^container: {words}"):
        container_options(fields)


def test_a_default_that_is_written_out_is_no_contradiction():
    written = ContainerConfig(network="none", engine="docker", limits={"memory": "2g"}, env={}, packages=[])
    assert written == ContainerConfig()
