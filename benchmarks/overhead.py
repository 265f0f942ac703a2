"""Overhead of the contract: 10,000 leg_counting episodes (reset + step + score) beside the upstream alone.

Target: at most 60 microseconds an episode. The upstream's share is making the item and scoring the answer, as a
user of reasoning-gym would; both run over the same indices with the same answers, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time

import reasoning_gym

import llenvs
from llenvs import Action


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="1,000 episodes, 3 rounds")
    args = parser.parse_args()
    episodes, rounds = (1_000, 3) if args.quick else (args.episodes, args.rounds)

    dataset = reasoning_gym.create_dataset("leg_counting", size=episodes, seed=42)
    env = llenvs.make("reasoning_gym/leg_counting", size=episodes, seed=42)
    answers = [str(dataset[i]["answer"]) if i % 2 else "7" for i in range(episodes)]
    actions = [Action(f"<answer>{answer}</answer>") for answer in answers]

    alone, ours = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        upstream_total = 0.0
        for i in range(episodes):
            upstream_total += dataset.score_answer(answers[i], dataset[i])
        alone.append((time.perf_counter() - began) / episodes)

        began = time.perf_counter()
        our_total = 0.0
        for i in range(episodes):
            state, _ = env.reset(options={"task_index": i})
            our_total += env.step(state, actions[i]).rewards.total
        ours.append((time.perf_counter() - began) / episodes)
        assert abs(upstream_total - our_total) < 1e-6, (upstream_total, our_total)

    a, b = statistics.median(alone) * 1e6, statistics.median(ours) * 1e6
    print(f"upstream alone {a:6.1f} us/episode   ours {b:6.1f}   overhead {b - a:6.1f} us   ratio {b / a:.2f}")


if __name__ == "__main__":
    main()
