"""Decoding a batch of rows with transformers' own ``generate``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from llenvs_transformers.model import LoadedModel
from llenvs_transformers.row import Row

if TYPE_CHECKING:
    import torch


def decode(loaded: LoadedModel, rows: Sequence[Row], stopped: Callable[[], bool]) -> None:
    """Generate until every row is done, or `stopped` says so; each row is handed over as soon as it is done.

    Prompts are padded on the left, where a causal model's attention mask hides the padding.
    """
    import torch
    from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

    width = max(len(row.prompt) for row in rows)
    padding = [width - len(row.prompt) for row in rows]
    ids = [[loaded.pad] * pad + list(row.prompt) for pad, row in zip(padding, rows, strict=True)]
    mask = [[0] * pad + [1] * (width - pad) for pad in padding]
    with torch.inference_mode():
        loaded.model.generate(
            torch.tensor(ids, device=loaded.device),
            attention_mask=torch.tensor(mask, device=loaded.device),
            generation_config=GenerationConfig(
                max_new_tokens=max(row.limit for row in rows), do_sample=False, pad_token_id=loaded.pad
            ),
            logits_processor=LogitsProcessorList([_choose(rows, loaded.pad)]),
            stopping_criteria=StoppingCriteriaList([_done(rows, stopped)]),
        )


def _choose(rows: Sequence[Row], pad: int) -> Any:
    """Leaves of each row's logits only the token that the row draws; a row that is done is filled up."""
    import torch
    from transformers import LogitsProcessor

    class Choose(LogitsProcessor):  # type: ignore[misc,unused-ignore]
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            tokens = [
                row.advance(logits) if row.active else pad
                for row, logits in zip(rows, scores.float(), strict=True)
            ]
            chosen = torch.full_like(scores, float("-inf"))
            chosen[torch.arange(len(rows)), torch.tensor(tokens, device=scores.device)] = 0.0
            return chosen

    return Choose()


def _done(rows: Sequence[Row], stopped: Callable[[], bool]) -> Any:
    """Which rows want no further token."""
    import torch
    from transformers import StoppingCriteria

    class Done(StoppingCriteria):  # type: ignore[misc,unused-ignore]
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **kwargs: Any) -> torch.Tensor:
            ending = stopped()
            return torch.tensor([ending or not row.active for row in rows], device=input_ids.device)

    return Done()
