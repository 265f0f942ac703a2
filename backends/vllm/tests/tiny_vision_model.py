"""Writes a tiny model with eyes and random weights: ``python tiny_vision_model.py TARGET TOKENIZER_FOLDER``.

Idefics3, whose code needs no torchvision: 4 tokens for an image of 56 x 56 pixels, of the tokens of SmolLM2.
"""

from __future__ import annotations

import sys
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for part in m['content'] %}"
    "{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def write(target: Path, tokenizer_folder: Path) -> None:
    """Make the folder `target`."""
    import torch
    from transformers import (
        AutoTokenizer,
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    cells = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    special = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *cells]
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    tokenizer.chat_template = TEMPLATE
    text = {
        "model_type": "llama",
        "vocab_size": 49280,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 1024,
        "pad_token_id": 2,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.3,  # weights large enough for logits that differ
    }
    vision = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
        "initializer_range": 0.3,
    }
    config = Idefics3Config(
        vision_config=vision,
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=2,
    )
    Idefics3ForConditionalGeneration(config).to(torch.float32).save_pretrained(target)
    edge = {"longest_edge": 56}
    images = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=TEMPLATE).save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
