"""Runtime "process" on the real server: getting ready, failing to, and leaving nothing behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from llenvs.container import create_container_environment
from llenvs.container.runtimes import runtime_for
from llenvs.container.runtimes.guarded import GuardedServer
from llenvs.core import Action
from llenvs.core.errors import ContainerFailed, UnknownOption

sys.path.insert(0, str(Path(__file__).parent))
from life import (
    LIFE,
    TOYS,
    descendants,
    eventually,
    is_running,
    none_running,
    process_config,
    run_directories,
)

sys.path.pop(0)


@pytest.fixture
def place(tmp_path_factory, monkeypatch) -> Path:
    """A directory for temporary files that nobody else uses."""
    path = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def start(**fields) -> GuardedServer:
    environment = {**LIFE, **fields.pop("options", {})}
    server = runtime_for(process_config(**fields)).start(environment)
    assert isinstance(server, GuardedServer)
    return server


def test_serves_on_a_socket_in_a_private_directory_and_removes_it(place):
    env = create_container_environment(LIFE, process_config())
    try:
        (directory,) = run_directories(place)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
        assert stat.S_ISSOCK((directory / "s").stat().st_mode)
        assert env.spec.metadata["pid"] in descendants(os.getpid())
        state, _ = env.reset(options={"task_index": 3})
        assert env.step(state, Action("<answer>4</answer>")).rewards.total == 1.0
        assert env.step(state, Action("<answer>5</answer>")).rewards.total == 0.0
    finally:
        env.close()
    assert run_directories(place) == []
    assert not is_running(env.spec.metadata["pid"])
    assert descendants(os.getpid()) == []


def test_log_holds_what_the_adapter_prints_and_its_tail_outlives_the_server(place):
    server = start()
    assert "building on stdout" in server.log_tail()
    assert "building on stderr" in server.log_tail()
    assert server.log_tail(lines=1).count("\n") == 0
    server.stop()
    assert not server.is_alive()
    assert "building on stdout" in server.log_tail()
    server.stop()


def test_log_dir_keeps_the_log(place, tmp_path):
    server = start(log_dir=tmp_path / "logs")
    server.stop()
    (log,) = (tmp_path / "logs").iterdir()
    assert log.name.startswith("toy_life-life-")
    assert "building on stdout" in log.read_text()


def test_listens_on_loopback_with_a_token_where_the_path_is_too_long_for_a_socket(tmp_path_factory, monkeypatch):
    long = tmp_path_factory.mktemp("t") / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    server = start()
    try:
        address, token = server.endpoint.address, server.endpoint.token
        assert address.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/spec", timeout=10)
        assert refused.value.code == 401
        request = urllib.request.Request(f"{address}/spec", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert b"toy_life" in answer.read()
        (secret,) = long.glob("llenvs-*/*/token")
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    finally:
        server.stop()
    env = create_container_environment(LIFE, process_config())
    assert len(env) == 5
    env.close()


def test_a_server_that_ends_before_it_is_ready_is_an_error_with_its_log(place):
    with pytest.raises(
        ContainerFailed, match=r"toy_life/life ended before it was ready \(exit status 7\)"
    ) as failed:
        start(options={"exit_status": 7})
    assert failed.value.log_tail.endswith("building on stderr")
    assert run_directories(place) == []


def test_a_server_that_is_not_ready_in_time_is_ended(place):
    with pytest.raises(ContainerFailed, match=r"not ready within 2 s \(start_timeout\)") as failed:
        start(options={"start_seconds": 600}, start_timeout=2.0)
    assert "building on stderr" in str(failed.value)
    assert descendants(os.getpid()) == []
    assert run_directories(place) == []


def test_what_the_environment_refuses_comes_through_as_itself(place):
    with pytest.raises(UnknownOption, match="'start_second'; did you mean 'start_seconds'"):
        create_container_environment({**LIFE, "start_second": 1}, process_config())
    assert run_directories(place) == []


def test_environment_variables_are_given(place):
    env = create_container_environment(LIFE, process_config(env={"PYTHONPATH": str(TOYS), "TOY": "a b=c"}))
    env.close()
    assert env.spec.metadata["environ"]["TOY"] == "a b=c"


def test_processes_that_detached_themselves_end_with_the_server(place):
    env = create_container_environment({**LIFE, "daemons": 3}, process_config())
    daemons = env.spec.metadata["daemons"]
    assert len(daemons) == 3
    assert all(map(is_running, daemons))
    env.close()
    assert none_running(daemons)


def test_processes_that_detached_themselves_end_when_the_server_is_killed(place):
    server = start(options={"daemons": 2})
    (pid,) = [
        pid
        for pid in descendants(os.getpid())
        if "llenvs_container" in _command(pid) and "guardian.py" not in _command(pid)
    ]
    daemons = [each for each in descendants(os.getpid()) if "time.sleep(600)" in _command(each)]
    assert len(daemons) == 2
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not server.is_alive(), "the death is noticed")
    assert none_running(daemons)
    assert "building on stdout" in server.log_tail()  # it is there until the server is stopped
    server.stop()
    assert run_directories(place) == []


def test_a_server_outlives_the_thread_that_started_it(place):
    servers: list[GuardedServer] = []
    thread = threading.Thread(target=lambda: servers.append(start()))
    thread.start()
    thread.join()
    (server,) = servers
    # the parent-death signal of Linux would have come by now, with the end of the thread
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["sleep", "5"], timeout=0.5)
    assert server.is_alive()
    server.stop()


def test_a_slow_close_of_the_environment_does_not_hold_up_the_end(place):
    env = create_container_environment({**LIFE, "close_seconds": 600}, process_config())
    env.close()
    assert not is_running(env.spec.metadata["pid"])
    assert run_directories(place) == []


def test_a_forked_child_does_not_end_the_server_of_its_parent(place):
    server = start()
    child = os.fork()
    if child == 0:
        server.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert server.is_alive()
    server.stop()


PARENT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits that it is ignored
from llenvs.container import ContainerConfig, create_container_environment
env = create_container_environment(
    {"name": "life", "adapter": "toy_life", "daemons": 2},
    ContainerConfig(env={"PYTHONPATH": sys.argv[1]}, replicas=2),
)
print(*env.spec.metadata["daemons"], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_parent_is_killed(tmp_path_factory, end):
    place = tmp_path_factory.mktemp("t")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(TOYS)],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    daemons = [int(pid) for pid in parent.stdout.readline().split()]
    started = descendants(parent.pid)
    # two replicas: for each a guardian, a server, and the detached processes that the guardian adopted
    assert len(started) == 8
    assert set(daemons) < set(started)
    assert len(run_directories(place)) == 2
    parent.send_signal(end)
    parent.wait()
    parent.stdout.close()
    eventually(lambda: none_running(started), "all processes have ended")
    eventually(lambda: run_directories(place) == [], "the run directories are gone")


def test_the_death_of_a_guardian_ends_its_server(place):
    server = start()
    (guardian,) = [pid for pid in descendants(os.getpid()) if "guardian.py" in _command(pid)]
    (below,) = descendants(guardian)
    os.kill(guardian, signal.SIGKILL)
    eventually(lambda: not is_running(below), "the server ends")
    assert not server.is_alive()
    server.stop()
    assert run_directories(place) == []


def test_cycles_leave_nothing(place):
    fds = len(os.listdir("/proc/self/fd"))
    threads = threading.active_count()
    for _ in range(5):
        start().stop()
    assert descendants(os.getpid()) == []
    assert run_directories(place) == []
    assert len(os.listdir("/proc/self/fd")) == fds
    assert threading.active_count() == threads


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
