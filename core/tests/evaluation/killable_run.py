"""A run to be killed: ``killable_run.py FOLDER TASKS DELAY``. Every request is noted in FOLDER.requests."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llenvs.core import EnvironmentSpec, Generation, Observation, Signal, SingleTurnEnvironment, Start
from llenvs.core.extraction import make_extractor
from llenvs.evaluation import EvaluationInterrupted, run_evaluation
from llenvs.inference import GenerationRequest, ScriptedBackend


class Addition(SingleTurnEnvironment[str]):
    def __init__(self, size: int) -> None:
        super().__init__(EnvironmentSpec("addition", "test", success_signal="score"), make_extractor("raw"))
        self.size = size

    @property
    def num_tasks(self) -> int:
        return self.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"{task_index} + 1"), str(task_index + 1))

    def _score(self, hidden: str, answer: str | None) -> Iterable[Signal]:
        yield Signal("score", reward=float((answer or "").strip() == hidden))


class NotingBackend(ScriptedBackend):
    """Answers after a random time up to `delay` seconds; three in four answers are right."""

    def __init__(self, path: str, delay: float) -> None:
        super().__init__(max_concurrency=8)
        self._notes = open(path, "a", buffering=1)  # noqa: SIM115 - open until the process dies
        self._delay = delay

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        await asyncio.sleep(random.random() * self._delay)
        task = int(request.messages[-1].content.split(" + ")[0])
        self._notes.write(f"{task}\n")
        return [Generation(str(task + 1 if task % 4 else 0) + " " * 5000)] * n


def main(folder: str, tasks: str, delay: str) -> None:
    backend = NotingBackend(folder + ".requests", float(delay))
    try:
        result = run_evaluation(Addition(int(tasks)), backend, output_dir=folder)
    except EvaluationInterrupted as stopped:
        print(stopped)  # noqa: T201
        sys.exit(130)
    print(result)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
