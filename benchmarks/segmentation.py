"""Overhead of segmentation: of the segmenters for each KB of text, of the wrapper for each step.

The segmenters run over a text of reasoning, at once and as if it came in chunks of 200 characters. The wrapper
takes a response of 20 sentences one by one, beside the base environment taking it whole; the difference, divided
by the steps, is what a step costs beyond the base environment. Rollouts of a scripted model are compared likewise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from measure import timed

import llenvs
from llenvs import Action
from llenvs.core import (
    CompositeSegmenter,
    CustomSegmenter,
    LineSegmenter,
    NumberedStepSegmenter,
    ParagraphSegmenter,
    SegmentedEnvironment,
    Segmenter,
    SentenceSegmenter,
    TokenSegmenter,
)
from llenvs.core.segmentation import final_segment
from llenvs.evaluation import SegmentedTrajectoryRunner, TrajectoryRunner
from llenvs.inference import ScriptedBackend

REASONING = """\
Step 1: First, count the animals. There are 2 dogs, e.g. Rex, and 3.5 kg of food; see Fig. 3.

Step 2: We know that $x = 4. y$ holds, so \\(f(x) = 8\\). Dr. Smith said "Stop." Then he left.
```python
legs = 2 * 4  # no sentence. Really
```
Step 3: Add them... The sum is 8! Is it so? Yes. <answer>8</answer>

"""

SEGMENTERS: dict[str, Segmenter] = {
    "sentence": SentenceSegmenter(),
    "line": LineSegmenter(),
    "paragraph": ParagraphSegmenter(),
    "numbered step": NumberedStepSegmenter(),
    "custom (regex)": CustomSegmenter(r"\n\n"),
    "token (words)": TokenSegmenter(
        lambda text: [w for part in text.split(" ") for w in (part, " ")][:-1], size=16
    ),
    "composite": CompositeSegmenter(ParagraphSegmenter(), SentenceSegmenter(split_lines=False)),
}


def seconds(function: Callable[[], object], rounds: int) -> float:
    """The least of some rounds, which other work disturbs least."""
    return min(timed(function) for _ in range(rounds))


def segmenters(kilobytes: int, rounds: int) -> None:
    text = REASONING * (1 + 1024 * kilobytes // len(REASONING))
    size = len(text.encode()) / 1024
    print(f"segmenters, {size:.0f} KB of text (and 2 KB in chunks)")
    short = text[:2048]
    chunks = range(200, len(short), 200)
    for name, segmenter in SEGMENTERS.items():
        assert "".join(segmenter.split(text)) == text
        whole = seconds(lambda s=segmenter: s.split(text), rounds) / size  # type: ignore[misc]
        streamed = seconds(
            lambda s=segmenter: [s.boundaries(short[:end], complete=False) for end in chunks],  # type: ignore[misc]
            rounds,
        )
        print(
            f"  {name:16} {whole * 1e6:7.1f} us/KB   in chunks {streamed * 1e6 / 2:7.1f} us/KB   "
            f"{len(segmenter.split(text)) / size:5.1f} segments/KB"
        )


def wrapper(episodes: int, rounds: int) -> None:
    base = llenvs.make("reasoning_gym/leg_counting", size=episodes, seed=42)
    env = SegmentedEnvironment(base, SentenceSegmenter())
    sentences = [f" This is sentence number {i} of the response." for i in range(19)]
    last = " <answer>8</answer>"
    whole, steps = Action("".join(sentences) + last), [Action(text) for text in sentences]
    end = final_segment(last)

    def alone() -> None:
        for i in range(episodes):
            state, _ = base.reset(options={"task_index": i})
            base.step(state, whole)

    def segmented() -> None:
        for i in range(episodes):
            state, _ = env.reset(options={"task_index": i})
            for action in (*steps, end):
                state = env.step(state, action).next_state

    def replayed() -> None:
        for i in range(episodes):
            env.replay(env.reset(options={"task_index": i})[0], whole)

    a, b, c = (seconds(run, rounds) / episodes * 1e6 for run in (alone, segmented, replayed))
    count = len(steps) + 1
    print(f"wrapper, {count} segments a response: base {a:.0f} us/episode, segmented {b:.0f}, replayed {c:.0f}")
    print(f"  {(b - a) / count:.1f} us a step beyond the base environment; replay {(c - a) / count:.1f}")


def runners(tasks: int, rounds: int) -> None:
    base = llenvs.make("reasoning_gym/leg_counting", size=tasks, seed=42)
    env = SegmentedEnvironment(base, SentenceSegmenter())
    backend = ScriptedBackend(" ".join(f"This is sentence number {i}." for i in range(20)))
    plain, segmented = TrajectoryRunner(base, backend), SegmentedTrajectoryRunner(env, backend)
    a = seconds(lambda: plain.run_batch(range(tasks)), rounds) / tasks * 1e6
    b = seconds(lambda: segmented.run_batch(range(tasks)), rounds) / tasks * 1e6
    c = seconds(lambda: segmented.run_batch(range(tasks), step_callback=lambda step: None), rounds) / tasks * 1e6
    print(f"rollouts with a scripted model: plain {a:.0f} us, of 20 segments {b:.0f}, with a callback {c:.0f}")
    print(f"  {(b - a) / 20:.0f} us a segment, {(c - a) / 20:.0f} with the callback (in a worker thread)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer")
    quick = parser.parse_args().quick
    rounds = 3 if quick else 7
    segmenters(16 if quick else 64, rounds)
    wrapper(100 if quick else 1000, rounds)
    runners(50 if quick else 200, rounds)


if __name__ == "__main__":
    main()
