"""Runtime "docker" on a real engine. Skipped where none answers, or where nobody built the image.

`LLENVS_TEST_IMAGE` names an image with the adapter reasoning_gym (container/images/build.sh makes one).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from llenvs.container import ContainerConfig, ResourceLimits, create_container_environment
from llenvs.container.cleanup import find_leaks, remove_leaks
from llenvs.container.runtimes.docker import OWNER_LABEL, RUN_LABEL, DockerRuntime, owner
from llenvs.core import Action
from llenvs.core.errors import ContainerFailed, InvalidOption, UnknownEnvironment
from llenvs.core.state import SealedHidden

sys.path.insert(0, str(Path(__file__).parent))
from life import LIFE, TOYS, descendants, eventually, none_running, run_directories

sys.path.pop(0)

IMAGE = os.environ.get("LLENVS_TEST_IMAGE", "llenvs-env:latest")
INSIDE = {"PYTHONPATH": "/toys"}


def engine_problem() -> str | None:
    """Why these tests cannot run here; None when they can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    if docker("info").returncode != 0:
        return "no container engine answers"
    if docker("image", "inspect", IMAGE).returncode != 0:
        return f"there is no image {IMAGE}; build it: container/images/build.sh reasoning-gym {IMAGE}"
    return None


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def _engine() -> None:
    problem = engine_problem()
    if problem is not None:
        if os.environ.get("LLENVS_REQUIRE_ENGINE"):
            pytest.fail(problem)
        pytest.skip(problem)


@pytest.fixture(autouse=True)
def place(tmp_path_factory, monkeypatch) -> Path:
    path = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def life_config(**fields) -> ContainerConfig:
    """The toy adapter, mounted into the container."""
    values = {"runtime": "docker", "image": IMAGE, "env": INSIDE, "volumes": {str(TOYS): "/toys"}}
    return ContainerConfig.model_validate({**values, "start_timeout": 60.0, **fields})


def containers(place: Path) -> list[str]:
    """Ids of the containers whose run directory lies in `place`, ended ones included."""
    listed = docker("ps", "--all", "--format", f'{{{{.ID}}}} {{{{.Label "{RUN_LABEL}"}}}}')
    assert listed.returncode == 0, listed.stderr
    return [line.split()[0] for line in listed.stdout.splitlines() if str(place) in line]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_answers_like_the_environment_in_this_process_and_leaves_nothing(place):
    from llenvs import make

    here = make("reasoning_gym/leg_counting", size=20)
    config = ContainerConfig(runtime="docker", image=IMAGE)
    there = create_container_environment({"name": "leg_counting", "adapter": "reasoning_gym", "size": 20}, config)
    try:
        assert len(containers(place)) == 1
        for index in (0, 13):
            ours, _ = here.reset(options={"task_index": index})
            theirs, _ = there.reset(options={"task_index": index})
            assert theirs == ours
            answer = Action(f"<answer>{ours.hidden['entry']['answer']}</answer>")
            assert there.step(theirs, answer) == here.step(ours, answer)
    finally:
        there.close()
        here.close()
    assert containers(place) == []
    assert run_directories(place) == []
    assert descendants(os.getpid()) == []


def test_the_container_is_confined(place):
    limits = ResourceLimits(memory="512m", cpus=0.5, pids=64)
    env = create_container_environment(LIFE, life_config(limits=limits))
    try:
        (container,) = containers(place)
        (found,) = json.loads(docker("inspect", container).stdout)
        host = found["HostConfig"]
        assert host["NetworkMode"] == "none"
        assert host["ReadonlyRootfs"] is True
        assert host["CapDrop"] == ["ALL"]
        assert "no-new-privileges" in host["SecurityOpt"]
        assert (host["Memory"], host["MemorySwap"]) == (512 << 20, 512 << 20)
        assert host["NanoCpus"] == 500_000_000
        assert host["PidsLimit"] == 64
        assert env.spec.metadata["uid"] == (os.getuid() or 10001)

        # and from the inside
        def inside(script: str) -> str:
            done = docker("exec", container, "python", "-c", script)
            return (done.stdout + done.stderr).strip().rpartition("\n")[2]

        status = inside(
            "print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'NoNewPrivs'))])"
        )
        assert status == "['0000000000000000', '1']"
        assert "Read-only file system" in inside("open('/opt/llenvs/x', 'w')")
        assert "Read-only file system" in inside("open('/toys/x', 'w')")
        assert inside("print(open('/tmp/x', 'w').write('abc'))") == "3"
        assert "Permission denied" in inside("open('/run/llenvs/x', 'w')")
        assert "Network is unreachable" in inside("import socket; socket.create_connection(('192.0.2.1', 80), 2)")
        assert inside("import os; print(sorted(os.listdir('/sys/class/net')))") == "['lo']"
    finally:
        env.close()


def test_variables_and_writable_volumes(place, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    config = life_config(
        env={**INSIDE, "TOY": "a b=c #d"}, volumes={str(TOYS): "/toys:ro", str(shared): "/shared:rw"}
    )
    env = create_container_environment(LIFE, config)
    try:
        assert env.spec.metadata["environ"]["TOY"] == "a b=c #d"
        (container,) = containers(place)
        assert docker("exec", container, "python", "-c", "open('/shared/x', 'w').write('abc')").returncode == 0
        assert (shared / "x").read_text() == "abc"
        # the arguments of a process are for everybody to read
        commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in descendants(os.getpid())]
        assert not any("a b=c" in command for command in commands)
    finally:
        env.close()


def test_a_port_leads_to_the_server_although_it_has_no_network(place):
    port = free_port()
    env = create_container_environment(LIFE, life_config(port=port))
    try:
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/spec", timeout=10) as answer:
                assert b"toy_life" in answer.read()
        with pytest.raises(ContainerFailed, match=f"port {port} on 127.0.0.1 cannot be used"):
            create_container_environment(LIFE, life_config(port=port))
        assert len(containers(place)) == 1
    finally:
        env.close()
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/spec", timeout=10)


@pytest.mark.parametrize("fixed", [False, True])
def test_with_a_network_the_port_is_published_and_asks_for_a_token(place, fixed):
    port = free_port() if fixed else None
    server = DockerRuntime(life_config(network="bridge", port=port)).start(LIFE)
    try:
        address = server.endpoint.address
        assert address == f"http://127.0.0.1:{port}" or (port is None and address.startswith("http://127.0.0.1:"))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/spec", timeout=10)
        assert refused.value.code == 401
        request = urllib.request.Request(f"{address}/spec")
        request.add_header("Authorization", f"Bearer {server.endpoint.token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert b"toy_life" in answer.read()
    finally:
        server.stop()
    assert containers(place) == []


def test_sealed_states_survive_the_server(place):
    env = create_container_environment(LIFE, life_config(seal=True))
    try:
        state, _ = env.reset(options={"task_index": 3})
        assert isinstance(state.hidden, SealedHidden)
        (container,) = containers(place)
        assert docker("kill", container).returncode == 0
        assert env.step(state, Action("<answer>4</answer>")).rewards.total == 1.0
        assert containers(place) != [container]
    finally:
        env.close()
    assert containers(place) == []


def test_errors_come_through_with_the_log(place):
    with pytest.raises(UnknownEnvironment, match="did you mean 'leg_counting'"):
        create_container_environment(
            {"name": "leg_countin", "adapter": "reasoning_gym"}, ContainerConfig(runtime="docker", image=IMAGE)
        )
    with pytest.raises(ContainerFailed, match=r"ended before it was ready \(exit status 7\)") as failed:
        create_container_environment({**LIFE, "exit_status": 7}, life_config())
    assert "building on stderr" in failed.value.log_tail
    with pytest.raises(ContainerFailed, match=r"not ready within 3 s"):
        create_container_environment({**LIFE, "start_seconds": 600}, life_config(start_timeout=3.0))
    assert containers(place) == []
    assert run_directories(place) == []


def test_a_missing_image_or_engine_is_named(place):
    with pytest.raises(ContainerFailed, match="docker has no image 'llenvs-nothing:0' here; build it"):
        create_container_environment(LIFE, life_config(image="llenvs-nothing:0"))
    with pytest.raises(ContainerFailed, match="'podwoman' is not on PATH"):
        create_container_environment(LIFE, life_config(engine="podwoman"))
    with pytest.raises(InvalidOption, match=r"container\.network: would end the isolation"):
        create_container_environment(LIFE, life_config(network="host"))
    with pytest.raises(InvalidOption, match=r"does not exist"):
        create_container_environment(LIFE, life_config(volumes={str(place / "no"): "/no"}))


PARENT = """
import json, sys, time
from llenvs.container import ContainerConfig, create_container_environment
env = create_container_environment(
    {"name": "life", "adapter": "toy_life", "daemons": 1}, ContainerConfig.model_validate_json(sys.argv[1])
)
print("ready", flush=True)
time.sleep(600)
"""


def parent_with_container(place: Path) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, life_config().model_dump_json()],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    assert len(containers(place)) == 1
    return parent, descendants(parent.pid)


def test_nothing_is_left_when_the_parent_is_killed(place):
    parent, started = parent_with_container(place)
    with parent:
        parent.kill()
    eventually(lambda: none_running(started), "the guardian and the engine's client have ended")
    assert containers(place) == []
    eventually(lambda: run_directories(place) == [], "the run directory is gone")


def test_a_container_ends_even_when_its_guardian_is_killed_with_the_parent(place):
    parent, started = parent_with_container(place)
    with parent:
        for pid in [parent.pid, *started]:
            os.kill(pid, signal.SIGKILL)
    # nobody is left on this side; the container notices that its standard input is closed
    eventually(lambda: containers(place) == [], "the container ends by itself")
    leaks = find_leaks()
    assert leaks.directories == tuple(run_directories(place)) != ()
    remove_leaks(leaks)
    assert run_directories(place) == []


def test_the_clean_up_finds_containers_that_nobody_owns(place):
    gone = place / "gone"
    labels = ["--label", f"{RUN_LABEL}={gone}", "--label", f"{OWNER_LABEL}={owner()}"]
    stray = docker(
        "run", "--detach", "--network", "none", *labels, "--entrypoint", "sleep", IMAGE, "600"
    ).stdout.strip()
    env = create_container_environment(LIFE, life_config())
    try:
        leaks = find_leaks()
        assert [container for _, container in leaks.containers] == [stray]
        remove_leaks(leaks)
        assert len(containers(place)) == 1
        assert len(env) == 5
    finally:
        env.close()
    assert containers(place) == []
