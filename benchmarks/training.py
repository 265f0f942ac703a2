"""What training needs of us, beside the upstream's own loop in the same run.

- Scoring of leg_counting: the upstream makes an item, finds the answer in the response (its own `extract_answer`)
  and scores it; `Scorer` does the same through the environment, one by one, in a batch, and with several responses
  to a prompt. Target: at least half the upstream's rate.
- 100,000 prompts: the upstream makes its items; `DatasetProvider` gives prompts, rows, and writes a Parquet file.
  Target: prompts in at most 1.5 times the upstream's time, under 1 GB.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import reasoning_gym
from measure import timed
from reasoning_gym.utils import extract_answer

import llenvs
from llenvs import DatasetProvider, Scorer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=20_000)
    parser.add_argument("--prompts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="2,000 responses, 10,000 prompts")
    args = parser.parse_args()
    if args.quick:
        args.responses, args.prompts = 2_000, 10_000
    prompts(args.prompts, args.rounds)
    scoring(args.responses, args.rounds)


def prompts(count: int, rounds: int) -> None:
    """Prompts of ours beside items of the upstream."""
    upstream = reasoning_gym.create_dataset("leg_counting", size=count, seed=42)
    env = llenvs.make("reasoning_gym/leg_counting", size=count, seed=42)

    def items() -> None:
        for index in range(count):
            upstream[index]["question"]

    def ours() -> None:
        for item in DatasetProvider(env):
            item.prompt  # noqa: B018

    def rows() -> None:
        for item in DatasetProvider(env):
            item.row()

    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "prompts": ours,
            "rows with identities": rows,
        }
        if importlib.util.find_spec("pyarrow"):
            ways["a Parquet file"] = lambda: DatasetProvider(env).to_parquet(Path(folder) / "prompts.parquet")
        print(f"{count:,} prompts of leg_counting, {rounds} rounds")
        compare(items, ways, rounds, count)
    print(f"  most memory of the process: {peak() / 1e6:.0f} MB")


def scoring(count: int, rounds: int) -> None:
    """Scores of ours beside the upstream's."""
    upstream = reasoning_gym.create_dataset("leg_counting", size=count, seed=42)
    env = llenvs.make("reasoning_gym/leg_counting", size=count, seed=42)
    responses = [f"There are {index} animals. <answer>{index % 300}</answer>" for index in range(count)]

    def items() -> None:
        for index in range(count):
            upstream.score_answer(extract_answer(responses[index]), upstream[index])

    def one_by_one(group: int) -> None:
        scorer = Scorer(env)
        for index in range(count):
            scorer.score(index // group, responses[index])

    ways = {
        "score": lambda: one_by_one(1),
        "score_batch": lambda: Scorer(env).score_batch(range(count), responses),
        "score, 8 responses to a prompt": lambda: one_by_one(8),
    }
    print(f"{count:,} responses to leg_counting, {rounds} rounds")
    compare(items, ways, rounds, count)


def compare(
    upstream: Callable[[], object], ways: dict[str, Callable[[], object]], rounds: int, count: int
) -> None:
    """Print the upstream's time and, of each way, its time and the ratio of the two in the same round."""
    alone: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        alone.append(timed(upstream))
        for name, way in ways.items():
            times[name].append(timed(way))
    print(f"  upstream: {statistics.median(alone) / count * 1e6:.0f} us each")
    for name, each in times.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(each, alone, strict=True))
        print(f"  {name}: {statistics.median(each) / count * 1e6:.0f} us each, {ratio:.2f} x the upstream's time")


def peak() -> int:
    """Bytes: the most that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
