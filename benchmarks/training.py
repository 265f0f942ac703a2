"""What training needs of us, beside the upstream's own loop in the same run.

- Scoring of leg_counting: the upstream makes an item, finds the answer in the response (its own `extract_answer`)
  and scores it; `Scorer` does the same through the environment, one by one, in a batch, and with several responses
  to a prompt. Target: at least half the upstream's rate.
- 100,000 prompts: the upstream makes its items; `DatasetProvider` gives prompts and rows, writes a Parquet file,
  and makes data sets of `datasets` (whole, and a stream read to its end) where these libraries are installed. The
  target is for prompts: at most 1.5 times the upstream's time, under 1 GB. Rows and data sets hold an identity for
  each task as well, and have no target of time.

Memory is measured apart: each way runs once more in a process of its own, which tells what it had before (imports
and the environment) and its peak.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import reasoning_gym
from measure import resident, timed
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

    provider = DatasetProvider(env)
    print(f"{count:,} prompts of leg_counting, {rounds} rounds")
    names = list(WAYS)
    if not importlib.util.find_spec("pyarrow"):
        names.remove("a Parquet file")
    if not importlib.util.find_spec("datasets"):
        names = [name for name in names if "to_hf_dataset" not in name]
    for name in names:
        warm(name)
    compare(items, {name: partial(WAYS[name], provider) for name in names}, rounds, count)
    context = multiprocessing.get_context("spawn")
    for name in names:
        with context.Pool(1) as pool:
            before, after = pool.apply(memory, (name, count))
        print(f"  {name}: at most {after / 1e6:.0f} MB, {before / 1e6:.0f} MB of it before")


def prompt_texts(provider: DatasetProvider) -> None:
    """The prompt of each task."""
    for item in provider:
        item.prompt  # noqa: B018


def rows(provider: DatasetProvider) -> None:
    """The row of each task."""
    for _ in provider.rows():
        pass


def parquet(provider: DatasetProvider) -> None:
    """A Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        provider.to_parquet(Path(folder) / "prompts.parquet")


def data_set(provider: DatasetProvider) -> None:
    """A `datasets.Dataset`."""
    assert len(provider.to_hf_dataset()) == len(provider)


def stream(provider: DatasetProvider) -> None:
    """A `datasets.IterableDataset`, read to its end."""
    assert sum(1 for _ in provider.to_hf_dataset(streaming=True)) == len(provider)


WAYS: dict[str, Callable[[DatasetProvider], None]] = {
    "prompts": prompt_texts,
    "rows with identities": rows,
    "a Parquet file": parquet,
    "to_hf_dataset()": data_set,
    "to_hf_dataset(streaming=True)": stream,
}


def warm(name: str) -> None:
    """Load what one of `WAYS` imports: ten tasks the same way."""
    WAYS[name](DatasetProvider(llenvs.make("reasoning_gym/leg_counting", size=10, seed=42)))


def memory(name: str, count: int) -> tuple[int, int]:
    """Bytes of this process before one of `WAYS`, and its peak."""
    warm(name)
    provider = DatasetProvider(llenvs.make("reasoning_gym/leg_counting", size=count, seed=42))
    before = resident()
    WAYS[name](provider)
    return before, peak()


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
    upstream: Callable[[], object], ways: Mapping[str, Callable[[], object]], rounds: int, count: int
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
    """Bytes: the most that this process had. `getrusage` counts a parent's memory, so Linux is asked elsewhere."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
