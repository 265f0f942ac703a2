"""Isolated environments: how long a cached sandbox takes to serve again, and what is left after many cycles.

Run: python benchmarks/sandboxes.py [--starts 7] [--cycles 100]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from llenvs.container import ContainerConfig, create_container_environment
from llenvs.container.cleanup import find_leaks
from llenvs.container.runtimes.venv import sandbox_variables
from llenvs.container.sandbox_plan import plan_sandbox
from llenvs.container.sandboxes import CACHE_VARIABLE, create_sandbox

ENVIRONMENT = {"name": "leg_counting", "adapter": "reasoning_gym"}
CONFIG = ContainerConfig(runtime="venv")
IMPORTS = {
    "the server's libraries": "import llenvs_container.main",
    "the adapter's upstream": "import llenvs_reasoning_gym.upstream as u; u.library()",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--cycles", type=int, default=100)
    args = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="llenvs-bench-") as place:
        os.environ[CACHE_VARIABLE] = place
        tempfile.tempdir = place  # so that what is left can only be ours
        measure(Path(place), args.starts, args.cycles)


def measure(place: Path, starts: int, cycles: int) -> None:
    sandbox, seconds = timed(lambda: create_sandbox(plan_sandbox(ENVIRONMENT["adapter"])))
    print(f"make the sandbox                {seconds:8.2f} s  ({len(sandbox.contents)} packages, from uv's cache)")
    print(f"first create (compiles)         {create_and_close()[0]:8.2f} s")
    cpu = children_cpu()
    again = [create_and_close() for _ in range(starts)]
    cpu = (children_cpu() - cpu) / starts
    print(f"second create, median           {statistics.median(s for s, _ in again):8.2f} s")
    print(f"second create, best             {min(s for s, _ in again):8.2f} s")
    print(f"  CPU time of all its processes {cpu:8.2f} s  (mean; what the wall time would be on an idle core)")
    print(f"close, median                   {statistics.median(s for _, s in again):8.2f} s")
    for what, script in IMPORTS.items():
        command = [str(sandbox.interpreter), "-P", "-c", script]
        variables = sandbox_variables(sandbox)
        taken = [timed(lambda: subprocess.run(command, env=variables, check=True))[1] for _ in range(starts)]  # noqa: B023
        print(f"  of which {what:<22} {statistics.median(taken):6.2f} s  (an interpreter's start included)")

    fds = open_descriptors()
    _, seconds = timed(lambda: [create_and_close() for _ in range(cycles)])
    leaks = find_leaks()
    print(f"{cycles} create/close cycles         {seconds:8.2f} s")
    print(
        f"left behind: {leaks}; child processes: {children()}; run directories: {run_directories(place)}; ", end=""
    )
    print(f"descriptors: {open_descriptors() - fds:+d}")


def create_and_close() -> tuple[float, float]:
    """Seconds to create the environment and have its first observation, and to close it."""
    env, created = timed(lambda: create_container_environment(ENVIRONMENT, CONFIG))
    _, reset = timed(lambda: env.reset(options={"task_index": 0}))
    _, closed = timed(env.close)
    return created + reset, closed


def timed(action):
    start = time.perf_counter()
    return action(), time.perf_counter() - start


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # the guardian's share holds the server's
    return used.ru_utime + used.ru_stime


def children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def run_directories(place: Path) -> int:
    return sum(1 for _ in place.glob("llenvs-*/*"))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    main()
