"""GRPO on a toy model, on a CPU: whole episodes of a small environment, and the curve of their rewards.

A walker on a line is told its start, its goal, and what is left of the way ("3 5 2 east"), and says "e" or "w".
The model knows nothing at first: it has two layers, random weights, and an alphabet of its own. Run it with TRL
installed (a minute or two)::

    pip install "llenvs[trl]" trl torch matplotlib
    OMP_NUM_THREADS=1 python examples/training_curve.py --out docs/images/grpo_curve.svg

The picture shows the mean reward of each step, as the trainer logs it; printed are the rewards of the test tasks
before and after. Start and goal are in all that the walker reads, so nothing of a test task is read in training.
What carries over is the word at the end.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs import Action, Environment, EnvironmentSpec, Observation, RewardType, Signal, State
from llenvs.core.environment import Advance, Start
from llenvs.integrations import split_tasks
from llenvs.integrations.trl import make_trl_dataset, make_trl_rollout_fn

TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'][0] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|a|>' }}{% endif %}"
)
SPECIAL = ("<|pad|>", "<|end|>", "<|u|>", "<|a|>")
ALPHABET = "0123456789 ewast"


class Line(Environment[dict[str, int]]):
    """Walk to the goal: task i is a start and a goal on a line of ten cells, 1 to 3 steps apart.

    Rewards: the share of the way that a step goes (less than 0 for a step back), so that arriving earns 1.
    """

    def __init__(self) -> None:
        super().__init__(
            EnvironmentSpec(
                "line",
                "examples",
                max_steps=4,
                is_multi_turn=True,
                success_signal="arrived",
                success_threshold=1.0,
            )
        )
        self._tasks = [(a, b) for a in range(10) for b in range(10) if 1 <= abs(a - b) <= 3]

    @property
    def num_tasks(self) -> int:
        """48."""
        return len(self._tasks)

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        at, goal = self._tasks[task_index]
        return Start(_shown(at, goal, at), {"at": at, "start": at, "goal": goal})

    def _advance(self, state: State[dict[str, int]], action: Action) -> Advance:
        hidden = state.hidden
        at = hidden["at"] + {"e": 1, "w": -1}.get(action.text.strip()[:1], 0)
        shown = _shown(hidden["start"], hidden["goal"], at)
        return Advance(shown, {**hidden, "at": at}, terminated=at == hidden["goal"])

    def _signals(
        self, state: State[dict[str, int]], action: Action, next_state: State[dict[str, int]]
    ) -> Iterable[Signal]:
        before, after = (abs(each.hidden["at"] - each.hidden["goal"]) for each in (state, next_state))
        far = abs(state.hidden["start"] - state.hidden["goal"])
        yield Signal("progress", RewardType.STEP, (before - after) / far)
        yield Signal("arrived", RewardType.OUTCOME, float(after == 0), weight=0.0)


def _shown(start: int, goal: int, at: int) -> Observation:
    return Observation(f"{start} {goal} {abs(goal - at)} {'east' if goal > at else 'west'}")


def tokenizer() -> Any:
    """One token for each letter."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(ALPHABET)}, merges=[]))
    made.decoder = decoders.Fuse()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|end|>",
        pad_token="<|pad|>",
        padding_side="left",
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def model(seed: int, tokens: Any) -> Any:
    """Two layers of 64, random weights."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokens),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=256,
            eos_token_id=tokens.eos_token_id,
            pad_token_id=tokens.pad_token_id,
            bos_token_id=None,
        )
    )


def train(steps: int, seed: int, learning_rate: float, folder: str) -> tuple[list[float], float, float]:
    """Rewards of each step, and those of the test tasks before and after."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        from transformers.trainer_callback import PrinterCallback
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise SystemExit(f"this example needs TRL: pip install torch trl jmespath ({error})") from None

    env = Line()
    split = split_tasks(env, test_share=0.25, seed=seed)
    rollout = make_trl_rollout_fn(env)
    tokens = tokenizer()
    trainer = GRPOTrainer(
        model=model(seed, tokens),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
        train_dataset=make_trl_dataset(env, indices=split.train, identity_in_prompt=True),
        eval_dataset=make_trl_dataset(env, indices=split.test, identity_in_prompt=True),
        processing_class=tokens,
        args=GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            gradient_checkpointing=False,
            disable_tqdm=True,
            log_level="error",
            seed=seed,
            max_steps=steps,
            logging_steps=1,
            learning_rate=learning_rate,
            lr_scheduler_type="constant",
            per_device_train_batch_size=128,
            per_device_eval_batch_size=64,
            num_generations=16,
            max_completion_length=32,  # just what three steps to the goal take
            beta=0.0,
        ),
    )
    trainer.remove_callback(PrinterCallback)  # a line of thirty numbers for each step
    before = trainer.evaluate()["eval_reward"]
    trainer.train()
    after = trainer.evaluate()["eval_reward"]
    history = [float(entry["reward"]) for entry in trainer.state.log_history if "reward" in entry]
    return history, float(before), float(after)


def draw(rewards: Sequence[float], path: Path) -> None:
    """The curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "llenvs"  # the same picture for the same numbers
    figure, axes = pyplot.subplots(figsize=(7, 3.5))
    window = 5
    smooth = [sum(rewards[max(0, n - window + 1) : n + 1]) / min(window, n + 1) for n in range(len(rewards))]
    axes.plot(range(1, len(rewards) + 1), rewards, color="0.75", label="each step (128 episodes)")
    axes.plot(range(1, len(rewards) + 1), smooth, color="C0", label=f"mean of {window} steps")
    axes.axhline(1.0, color="C2", linestyle=":", label="always at the goal")
    axes.set_xlabel("GRPO step")
    axes.set_ylabel("mean reward")
    axes.legend(loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Train, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--out", type=Path, help="the picture: *.svg or *.png")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rewards, before, after = train(args.steps, args.seed, args.learning_rate, folder)
    tenth = max(1, len(rewards) // 6)
    print(f"first {tenth} steps: {sum(rewards[:tenth]) / tenth:.2f}   last: {sum(rewards[-tenth:]) / tenth:.2f}")
    print(f"test tasks: {before:.2f} before, {after:.2f} after")
    if args.out is not None:
        draw(rewards, args.out)


if __name__ == "__main__":
    main()
