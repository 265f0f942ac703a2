"""Round trips of an isolated environment, beside the same steps in process and beside OpenEnv.

Targets: a sequential, warm step of leg_counting at most 0.4 ms (median) over the step in process through the
channel and 1 ms through plain HTTP; 64 concurrent callers at least 3,000 steps/s from one server process; and an
echo environment not slower than one of OpenEnv (PyPI, its own client and server, one WebSocket session a caller).

    python benchmarks/isolation.py                       makes a virtual environment for openenv with uv
    python benchmarks/isolation.py --openenv PYTHON      uses an interpreter that has openenv
    python benchmarks/isolation.py --openenv none        leaves it out

The rounds alternate, so that a busy machine slows all of them; medians over the rounds are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import llenvs
from llenvs import Action
from llenvs.container import ContainerConfig, create_container_environment
from llenvs.container.client import ContainerEnvironment

OPENENV = "openenv==0.10.0"
ENVIRONMENT = {"name": "leg_counting", "adapter": "reasoning_gym", "size": 100, "seed": 42}

ECHO_ADAPTER = """
from llenvs.core import Adapter, Advance, Environment, EnvironmentInfo, EnvironmentSpec, Observation, Signal, Start


class EchoEnvironment(Environment):
    num_tasks = 1

    def _start(self, task_index, seed, options):
        return Start(Observation("ready"), None)

    def _advance(self, state, action):
        return Advance(Observation(action.text), None)

    def _signals(self, state, action, next_state):
        yield Signal("length", reward=0.1)


class EchoAdapter(Adapter):
    name = "echo"

    def list_environments(self):
        return [EnvironmentInfo("echo", "echo")]

    def create(self, name, options):
        return EchoEnvironment(EnvironmentSpec("echo", "echo", max_steps=None, is_multi_turn=True))
"""

OPENENV_SERVER = """
from openenv.core.env_server import Action, Environment, Observation, State, create_app


class Echo(Action):
    message: str


class Echoed(Observation):
    echoed: str = ""
    length: int = 0


class EchoEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State(episode_id="0", step_count=0)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id="0", step_count=0)
        return Echoed(echoed="ready", done=False, reward=0.0)

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        return Echoed(echoed=action.message, length=len(action.message), done=False, reward=0.1)

    @property
    def state(self):
        return self._state


app = create_app(EchoEnvironment, Echo, Echoed, env_name="echo", max_concurrent_envs=256)
"""

OPENENV_CLIENT = """
import asyncio, json, sys, time
from openenv.core.generic_client import GenericEnvClient

URL, MESSAGE = sys.argv[1], {"message": "<answer>187</answer>"}


async def sequential(steps):
    async with GenericEnvClient(base_url=URL) as env:
        await env.reset()
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            await env.step(MESSAGE)
            times.append(time.perf_counter() - began)
        return times


async def concurrent(steps, callers):
    clients = [GenericEnvClient(base_url=URL) for _ in range(callers)]
    for client in clients:
        await client.connect()
        await client.reset()

    async def caller(client):
        for _ in range(steps // callers):
            await client.step(MESSAGE)

    began = time.perf_counter()
    await asyncio.gather(*map(caller, clients))
    rate = steps // callers * callers / (time.perf_counter() - began)
    for client in clients:
        await client.close()
    return rate


for line in sys.stdin:
    kind, steps, callers = json.loads(line)
    work = sequential(steps) if kind == "sequential" else concurrent(steps, callers)
    print("RESULT", json.dumps(asyncio.run(work)), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openenv", default="venv", metavar="PYTHON")
    parser.add_argument(
        "--steps", type=int, default=2000, help="of one round, sequential (concurrent: 4 times as many)"
    )
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="500 steps, 3 rounds")
    args = parser.parse_args()
    steps, rounds = (500, 3) if args.quick else (args.steps, args.rounds)

    with tempfile.TemporaryDirectory() as folder:
        openenv = None if args.openenv == "none" else OpenEnv(Path(folder), args.openenv)
        local = llenvs.make("reasoning_gym/leg_counting", size=100, seed=42)
        env = create_container_environment(ENVIRONMENT, ContainerConfig())
        echo = create_container_environment(
            "echo/echo", ContainerConfig(env={"PYTHONPATH": echo_adapter(Path(folder))})
        )
        web = HttpClient(Path(folder))
        try:
            measure(local, env, echo, web, openenv, steps, args.callers, rounds)
        finally:
            env.close()
            echo.close()
            web.close()
            if openenv is not None:
                openenv.close()


def measure(
    local: Any,
    env: ContainerEnvironment,
    echo: ContainerEnvironment,
    web: HttpClient,
    openenv: OpenEnv | None,
    steps: int,
    callers: int,
    rounds: int,
) -> None:
    state, _ = env.reset(options={"task_index": 3})
    local_state, _ = local.reset(options={"task_index": 3})
    action = Action("<answer>187</answer>")
    assert env.step(state, action) == local.step(local_state, action)

    kinds: dict[str, Callable[[], list[float]]] = {
        "in process": lambda: timed(lambda: local.step(local_state, action), steps),
        "channel, async": lambda: asyncio.run(atimed(env, 3, action, steps)),
        "channel, sync": lambda: timed(lambda: env.step(state, action), steps),
        "plain HTTP": lambda: web.timed(steps),
        "echo, async": lambda: asyncio.run(atimed(echo, 0, action, steps)),
    }
    if openenv is not None:
        kinds["echo of OpenEnv"] = lambda: openenv.ask("sequential", steps, 1)
    rates: dict[str, Callable[[], float]] = {
        "leg_counting": lambda: asyncio.run(arate(env, action, 4 * steps, callers)),
        "echo": lambda: asyncio.run(arate(echo, action, 4 * steps, callers)),
    }
    if openenv is not None:
        rates["echo of OpenEnv"] = lambda: openenv.ask("concurrent", 4 * steps, callers)

    medians: dict[str, list[float]] = {name: [] for name in kinds}
    tails: dict[str, list[float]] = {name: [] for name in kinds}
    per_second: dict[str, list[float]] = {name: [] for name in rates}
    for number in range(rounds + 1):
        for name, run in kinds.items():
            times = sorted(run())
            if number:  # the first round warms up
                medians[name].append(times[len(times) // 2])
                tails[name].append(times[int(0.99 * len(times))])
        for name, rate in rates.items():
            value = rate()
            if number:
                per_second[name].append(value)

    base = statistics.median(medians["in process"])
    print(f"one step at a time, {rounds} rounds of {steps}")
    for name in kinds:
        median, tail = statistics.median(medians[name]), statistics.median(tails[name])
        best = min(medians[name])
        print(
            f"  {name:16} median {1e3 * median:6.3f} ms   over in process {1e3 * (median - base):6.3f} ms   "
            f"p99 {1e3 * tail:6.3f} ms   best round {1e3 * best:6.3f} ms"
        )
    print(f"{callers} callers at once, {rounds} rounds of {4 * steps}")
    for name, values in per_second.items():
        print(f"  {name:16} {statistics.median(values):7.0f} steps/s   best round {max(values):7.0f}")


def timed(step: Callable[[], Any], steps: int) -> list[float]:
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return times


async def atimed(env: ContainerEnvironment, task: int, action: Action, steps: int) -> list[float]:
    state, _ = await env.areset(options={"task_index": task})
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        await env.astep(state, action)
        times.append(time.perf_counter() - began)
    return times


async def arate(env: ContainerEnvironment, action: Action, steps: int, callers: int) -> float:
    states = [(await env.areset(options={"task_index": i % len(env)}))[0] for i in range(callers)]

    async def caller(state: llenvs.State[Any]) -> None:
        for _ in range(steps // callers):
            await env.astep(state, action)

    began = time.perf_counter()
    tasks: list[Awaitable[None]] = [caller(state) for state in states]
    await asyncio.gather(*tasks)
    return steps // callers * callers / (time.perf_counter() - began)


def echo_adapter(folder: Path) -> str:
    """A folder that holds the echo adapter as if it were installed."""
    place = folder / "echo"
    metadata = place / "echo_adapter-1.0.dist-info"
    metadata.mkdir(parents=True)
    (place / "echo_adapter.py").write_text(ECHO_ADAPTER)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-adapter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[llenvs.adapters]\necho = echo_adapter:EchoAdapter\n")
    return str(place)


class HttpClient:
    """A server on TCP, and one kept-alive connection of the standard library, as another language would use it."""

    def __init__(self, folder: Path) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "llenvs_container", "--config", json.dumps(ENVIRONMENT), "--port", "0"]
        self._server = subprocess.Popen(
            [*command, "--ready-fd", str(writing)], pass_fds=[writing], stderr=(folder / "log").open("w")
        )
        os.close(writing)
        with os.fdopen(reading) as ready:
            address = json.loads(ready.readline())["address"]
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"))
        self._body = json.dumps({"key": self._ask("/reset", '{"options":{"task_index":3}}')["key"], "action": "7"})

    def _ask(self, path: str, body: str) -> Any:
        self._connection.request("POST", path, body)
        return json.loads(self._connection.getresponse().read())

    def timed(self, steps: int) -> list[float]:
        self._connection.close()  # an idle one may be closed at the other end; the next request opens it anew
        self._step()
        return timed(self._step, steps)

    def _step(self) -> None:
        assert "next_state" in self._ask("/step", self._body)

    def close(self) -> None:
        self._connection.close()
        self._server.terminate()
        self._server.wait()


class OpenEnv:
    """An echo environment of OpenEnv: its server and its client, each in a process of the other interpreter."""

    def __init__(self, folder: Path, python: str) -> None:
        if python == "venv":
            python = str(folder / "venv" / "bin" / "python")
            subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
            subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, OPENENV], check=True)
        (folder / "echo_server.py").write_text(OPENENV_SERVER)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [python, "-m", "uvicorn", "echo_server:app", "--port", str(port), "--log-level", "warning"]
        self._log = (folder / "openenv.log").open("w")
        self._server = subprocess.Popen(command, cwd=folder, stdout=self._log, stderr=self._log)
        self._await(port)
        self._client = subprocess.Popen(
            [python, "-c", OPENENV_CLIENT, f"http://127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def _await(self, port: int) -> None:
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("the OpenEnv server did not start")

    def ask(self, kind: str, steps: int, callers: int) -> Any:
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(json.dumps([kind, steps, callers]) + "\n")
        self._client.stdin.flush()
        for line in self._client.stdout:
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise SystemExit("the OpenEnv client failed")

    def close(self) -> None:
        assert self._client.stdin is not None
        self._client.stdin.close()
        self._client.wait()
        self._server.terminate()
        self._server.wait()
        self._log.close()


if __name__ == "__main__":
    main()
