"""A run killed with SIGKILL at random moments and resumed each time, beside an undisturbed one.

Shown are whether both hold the same trajectories, each once, and how many requests were answered twice (at most
those in flight at a kill can be).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollouts import SYSTEM_PROMPT, addition_environment, answer_to

from llenvs.core import Generation
from llenvs.evaluation import read_trajectories, run_evaluation
from llenvs.inference import GenerationRequest, ScriptedBackend

IN_FLIGHT = 16


class NotingBackend(ScriptedBackend):
    """Answers within `delay` seconds and notes every answer in a file."""

    def __init__(self, notes: str, delay: float) -> None:
        super().__init__(max_concurrency=IN_FLIGHT)
        self._notes = open(notes, "a", buffering=1)  # noqa: SIM115 - open until the process dies
        self._delay = delay

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        await asyncio.sleep(random.random() * self._delay)
        question = request.messages[-1].content
        self._notes.write(question + "\n")
        return [Generation(answer_to(question) + " padding" * random.Random(question).randrange(4000))] * n


def run_once(folder: str, tasks: int, delay: float) -> None:
    backend = NotingBackend(folder + ".requests", delay)
    environment = addition_environment(tasks)
    run_evaluation(environment, backend, system_prompt=SYSTEM_PROMPT, output_dir=folder, log=())


def start(folder: Path, tasks: int, delay: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--run", str(folder), "--tasks", str(tasks), "--delay", str(delay)]
    return subprocess.Popen(command)


def results(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(
        (r["environment"], r["task_index"], r["repeat"], r["success"], r["reward"], r["turns"][0]["response"])
        for r in read_trajectories(folder)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=1500)
    parser.add_argument("--delay", type=float, default=0.3, help="longest latency of a request in seconds")
    parser.add_argument("--quick", action="store_true", help="4 kills")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run_once(args.run, args.tasks, args.delay)
        return
    kills = 4 if args.quick else args.kills
    draw = random.Random()
    half_lines = done_before = 0
    with tempfile.TemporaryDirectory() as temporary:
        killed, whole = Path(temporary) / "killed", Path(temporary) / "whole"
        trajectories = killed / "trajectories.jsonl"
        for number in range(kills):
            process = start(killed, args.tasks, args.delay)
            if number % 4:  # every fourth is killed while it starts or reads what there is
                while process.poll() is None and size(trajectories) <= done_before:
                    time.sleep(0.001)
            time.sleep(draw.random() * (0.4 if number % 4 else 1.2))
            process.send_signal(signal.SIGKILL)
            if process.wait() != -signal.SIGKILL:
                sys.exit(f"the run ended before kill {number + 1}; give more --tasks")
            data = trajectories.read_bytes() if trajectories.exists() else b""
            half_lines += bool(data) and not data.endswith(b"\n")
            done_before = len(data)
        lines = trajectories.read_bytes().count(b"\n")
        for folder in (killed, whole):
            if start(folder, args.tasks, 0.0).wait() != 0:
                sys.exit(f"the run in {folder.name} failed")
        once, undisturbed = results(killed), results(whole)
        requests = Counter(Path(f"{killed}.requests").read_text().splitlines())
    twice = len(once) - len({key[:3] for key in once})
    print(
        f"{kills} kills, {lines} of {args.tasks} trajectories done before the last start, {half_lines} half lines"
    )
    print(f"same trajectories as the undisturbed run: {once == undisturbed}; {len(once)} in all, {twice} twice")
    again = sum(requests.values()) - args.tasks
    print(f"requests answered twice: {again} (in flight at the kills: at most {kills * IN_FLIGHT})")
    if once != undisturbed or twice or len(once) != args.tasks:
        sys.exit(1)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    main()
