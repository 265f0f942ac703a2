"""A tokenizer of 273 tokens whose every id can be worked out by hand: bytes, eight merges, ChatML."""

from __future__ import annotations

from typing import Any

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "k"), ("1", "6"), ("1", "2"), ("i", "n"), ("<", "a")]
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_ADDED = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


def toy_tokenizer(chat_template: str = CHATML) -> Any:
    """Bytes are 0-255, merges 256-263, special tokens 264-266, the added ones 267-272."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {symbol: number for number, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for left, right in _MERGES:
        vocabulary[left + right] = len(vocabulary)
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=_MERGES))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in _SPECIAL])
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in _ADDED])
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
    )
