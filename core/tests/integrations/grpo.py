"""GRPOTrainer of TRL on a CPU, and what it saw and computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toy_tokenizer import toy_tokenizer
from trl import GRPOConfig, GRPOTrainer


class WatchedTrainer(GRPOTrainer):
    """Keeps the batches that it makes: `batches`, dicts of tensors as the loss takes them."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        made = super()._generate_and_score_completions(inputs)
        self.batches = [*getattr(self, "batches", []), made]
        return made

    def rows(self, batch: int = 0) -> list[dict[str, Any]]:
        """Of each completion: ids, mask (1: trained on), advantage."""
        made = self.batches[batch]
        rows = []
        for number, ids in enumerate(made["completion_ids"]):
            length = int(made["completion_mask"][number].sum())
            mask = made.get("tool_mask")
            rows.append(
                {
                    "ids": ids[:length].tolist(),
                    "mask": [1] * length if mask is None else mask[number][:length].tolist(),
                    "advantage": float(made["advantages"][number]),
                }
            )
        return rows


def trained(
    model: Any, folder: Path, *, tokenizer: Any = None, config: Any = None, kind: Any = None, **options: Any
) -> WatchedTrainer:
    """The trainer after its steps."""
    settings = {
        "output_dir": str(folder),
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "gradient_checkpointing": False,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 256,
        "max_steps": 1,
        "logging_steps": 1,
        "beta": 0.0,
        "disable_tqdm": True,
        **(config or {}),
    }
    trainer: WatchedTrainer = (kind or WatchedTrainer)(
        model=model, args=GRPOConfig(**settings), processing_class=tokenizer or toy_tokenizer(), **options
    )
    trainer.train()
    return trainer
