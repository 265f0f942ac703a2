"""``llenvs serve`` and a client that finds it by its address."""

import json
import signal
import subprocess
import sys
import time

import pytest

from llenvs import Action, make
from llenvs.container import create_container_environment
from llenvs.core.errors import ContainerFailed


@pytest.fixture
def serve(tmp_path):
    """Starts ``llenvs serve ARGUMENTS`` and ends it afterwards, in good order."""
    servers = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "llenvs_cli", "serve", *arguments]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
        assert server.returncode == 0


def test_a_client_finds_what_is_served(serve, tmp_path):
    socket = tmp_path / "s"
    (tmp_path / "token").write_text("open-sesame-0123456")
    serve("reasoning_gym/leg_counting", "-o", "size=7", "--uds", str(socket), "--token-file", "token")
    deadline = time.monotonic() + 120
    while not socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    container = {"runtime": "url", "url": f"unix://{socket}"}
    with pytest.raises(ContainerFailed, match="this server wants the header"):
        create_container_environment({}, container)
    env = create_container_environment({}, {**container, "token": "open-sesame-0123456"})
    here = make("reasoning_gym/leg_counting", size=7)
    assert len(env) == 7
    state, _ = env.reset(options={"task_index": 5})
    assert state == here.reset(options={"task_index": 5})[0]
    right = Action(f"<answer>{state.hidden['entry']['answer']}</answer>")
    assert env.step(state, right).rewards.total == 1.0
    env.close()
    here.close()


def test_what_cannot_be_served_is_said():
    command = [sys.executable, "-m", "llenvs_cli", "serve", "reasoning_gym/leg_countin", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "did you mean 'leg_counting'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_options_reach_the_environment():
    command = [
        sys.executable,
        "-m",
        "llenvs_cli",
        "serve",
        "reasoning_gym/leg_counting",
        "-o",
        "size=0",
        "--port",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "size" in done.stderr
    assert json.dumps(0) in done.stderr
