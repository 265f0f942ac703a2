"""Rollouts a second without a model: 1,000 single-turn tasks here and with verifiers' `evaluate_sync`.

Both ask the same questions with the same system prompt, get the same answer at once from a client in the same
process, find it between tags and compare it. verifiers gets a throw-away environment of its own, made by uv (or
give one with ``--verifiers-python``), and runs without its progress bar. The two alternate; the best and the
median round of each are compared. Target: at least 3 x.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

SYSTEM_PROMPT = "Write your final answer between <answer> and </answer>."
VERIFIERS = "verifiers==0.3.1"


def question(index: int) -> str:
    return f"What is {index} + 1?"


def answer_to(text: str) -> str:
    """Right but for every tenth question."""
    index = int(text.split("What is ")[1].split(" + ")[0])
    return f"Let me see. <answer>{index + 1 if index % 10 else 'unknown'}</answer>"


def time_llenvs(tasks: int, concurrency: int, on_disk: bool) -> float:
    from llenvs.evaluation import run_evaluation
    from llenvs.inference import ScriptedBackend

    backend = ScriptedBackend(lambda request: answer_to(request.messages[-1].content))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        result = run_evaluation(
            addition_environment(tasks),
            backend,
            system_prompt=SYSTEM_PROMPT,
            batch_size=concurrency,
            output_dir=Path(folder) / "run" if on_disk else None,
            log=(),
        )
        seconds = time.perf_counter() - began
    assert result.mean_reward is not None
    assert abs(result.mean_reward - 0.9) < 0.005, result
    return seconds


def addition_environment(tasks: int) -> Any:
    """Task i asks for i + 1."""
    from llenvs.core import EnvironmentSpec, Observation, Signal, SingleTurnEnvironment, Start
    from llenvs.core.extraction import make_extractor

    class Addition(SingleTurnEnvironment[str]):
        def __init__(self) -> None:
            spec = EnvironmentSpec("addition", "benchmark", success_signal="score")
            super().__init__(spec, make_extractor("tag_based"))

        @property
        def num_tasks(self) -> int:
            return tasks

        def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
            return Start(Observation(question(task_index)), str(task_index + 1))

        def _score(self, hidden: str, answer: str | None) -> Iterable[Signal]:
            yield Signal("score", reward=float(answer == hidden))

    return Addition()


def time_verifiers(tasks: int, concurrency: int) -> Callable[[], float]:
    """A function that runs the tasks once and gives the seconds; run in verifiers' own environment."""
    import verifiers as vf
    from datasets import Dataset
    from verifiers.clients import Client
    from verifiers.types import Response, ResponseMessage, Usage

    class Scripted(Client):  # type: ignore[misc]
        def setup_client(self, config: Any) -> Any:
            return None

        async def to_native_tool(self, tool: Any) -> Any:
            return tool

        async def to_native_prompt(self, messages: Any) -> tuple[Any, dict[str, Any]]:
            return messages, {}

        async def get_native_response(
            self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
        ) -> Any:
            last = prompt[-1]
            text = last["content"] if isinstance(last, dict) else last.content
            message = ResponseMessage(content=answer_to(text), finish_reason="stop", is_truncated=False)
            usage = Usage(prompt_tokens=20, reasoning_tokens=0, completion_tokens=4, total_tokens=24)
            return Response(id="0", created=0, model=model, usage=usage, message=message)

        async def raise_from_native_response(self, response: Any) -> None:
            pass

        async def from_native_response(self, response: Any) -> Any:
            return response

        async def close(self) -> None:
            pass

    parser = vf.XMLParser(["answer"])

    def correct(completion: Any, answer: str, **kwargs: Any) -> float:
        return float(parser.parse_answer(completion) == answer)

    rows = [{"question": question(i), "answer": str(i + 1)} for i in range(tasks)]
    environment = vf.SingleTurnEnv(
        eval_dataset=Dataset.from_list(rows),
        system_prompt=SYSTEM_PROMPT,
        parser=parser,
        rubric=vf.Rubric(funcs=[correct], parser=parser),
    )
    client = Scripted(None)

    def once() -> float:
        began = time.perf_counter()
        outputs = environment.evaluate_sync(
            client, "scripted", num_examples=tasks, rollouts_per_example=1, max_concurrent=concurrency
        )
        seconds = time.perf_counter() - began
        rewards = [output["reward"] for output in outputs["outputs"]]
        assert abs(statistics.fmean(rewards) - 0.9) < 0.005, statistics.fmean(rewards)
        return seconds

    return once


def serve_verifiers(tasks: int, concurrency: int) -> None:
    """Time one round for each line read, so that rounds can alternate with ours."""
    import logging

    logging.disable(logging.CRITICAL)
    asyncio.set_event_loop(asyncio.new_event_loop())
    once = time_verifiers(tasks, concurrency)
    out = sys.stdout
    sys.stdout = sys.stderr
    for _ in sys.stdin:
        print(json.dumps(once()), file=out, flush=True)


def verifiers_python(folder: str) -> str:
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("uv is needed to make an environment for verifiers; or give --verifiers-python")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = str(Path(folder) / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, VERIFIERS], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 300 tasks")
    parser.add_argument("--verifiers-python", help="an interpreter that has verifiers")
    parser.add_argument("--serve-verifiers", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.tasks, args.rounds = 300, 2
    if args.serve_verifiers:
        serve_verifiers(args.tasks, args.concurrency)
        return
    with tempfile.TemporaryDirectory() as folder:
        python = args.verifiers_python or verifiers_python(folder)
        command = [python, __file__, "--serve-verifiers"]
        command += ["--tasks", str(args.tasks), "--concurrency", str(args.concurrency)]
        seconds: dict[str, list[float]] = {"verifiers": [], "llenvs": [], "llenvs, recorded on disk": []}
        quiet = {**os.environ, "TQDM_DISABLE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=quiet,
        ) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            for _ in range(1 + args.rounds):
                other.stdin.write("go\n")
                other.stdin.flush()
                seconds["verifiers"].append(json.loads(other.stdout.readline()))
                seconds["llenvs"].append(time_llenvs(args.tasks, args.concurrency, False))
                seconds["llenvs, recorded on disk"].append(time_llenvs(args.tasks, args.concurrency, True))
    print(f"{args.tasks} single-turn tasks, {args.concurrency} in flight, rollouts/s, best and median round")
    rates = {name: [args.tasks / s for s in values[1:]] for name, values in seconds.items()}  # the first warms up
    base = rates["verifiers"]
    for name, values in rates.items():
        best, median = max(values), statistics.median(values)
        print(
            f"{name:26} {best:8.0f} {median:8.0f}   "
            f"{best / max(base):5.2f} x  {median / statistics.median(base):5.2f} x verifiers"
        )


if __name__ == "__main__":
    main()
