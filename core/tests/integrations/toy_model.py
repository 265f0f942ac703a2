"""A model small enough to train in a test, and one that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from toy_tokenizer import toy_tokenizer
from transformers import Qwen2Config, Qwen2ForCausalLM

PAD = 264
END = 266

Script = Callable[[str], str | Sequence[int]]
"""What to say to a prompt (its text, control tokens written out): a text, or ids with their end of turn."""


def toy_model(seed: int = 0, **options: Any) -> Qwen2ForCausalLM:
    """Random weights: two layers of 32."""
    torch.manual_seed(seed)
    return Qwen2ForCausalLM(_config(**options))


def _config(**options: Any) -> Qwen2Config:
    settings: Mapping[str, Any] = {
        "vocab_size": 273,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "bos_token_id": None,
        "tie_word_embeddings": True,
    }
    return Qwen2Config(**{**settings, **options})


class ScriptedModel(Qwen2ForCausalLM):
    """Says what `script` tells; forward pass, loss and gradients are the model's own."""

    script: Script
    tokenizer: Any = None

    def generate(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> torch.Tensor:
        """Prompts and what is said to them, padded on the right."""
        tokenizer = self.tokenizer or toy_tokenizer()
        answers = []
        for ids, mask in zip(input_ids, attention_mask, strict=True):
            said = self.script(tokenizer.decode(ids[mask.bool()].tolist()))
            answers.append([*tokenizer(said).input_ids, END] if isinstance(said, str) else list(said))
        length = max(map(len, answers))
        padded = torch.tensor([answer + [PAD] * (length - len(answer)) for answer in answers])
        return torch.cat([input_ids, padded], dim=1)


def scripted_model(script: Script) -> ScriptedModel:
    """A `ScriptedModel` with random weights."""
    torch.manual_seed(0)
    model = ScriptedModel(_config())
    model.script = script
    return model
