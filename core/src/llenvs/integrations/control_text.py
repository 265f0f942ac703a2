"""Texts of control tokens in what an environment says.

Trainers that render a chat themselves take ``<|im_end|>`` in an observation for the token that ends a turn, so an
environment (a web page, a file, what a model wrote before) could speak as the model. Where the trainer tokenises,
such texts are broken up by a space: ``< |im_end|>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

END_OF_TURN = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|return|>", "<|call|>"),
    *("<|endoftext|>", "<|end_of_text|>", "</s>"),
)
"""Texts of end-of-turn tokens of common chat formats."""

# of common chat formats, for where no tokenizer is at hand
_COMMON = re.compile(
    r"<(?=\|[A-Za-z_][\w ]{0,40}\|?>)"  # <|im_start|>, <|start_header_id|>, <|turn>
    r"|<(?=(?:/?s|bos|eos|pad|unk|(?:start|end)_of_turn|turn\|)>)"
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])"
    "|<(?=\uff5c)"  # DeepSeek's, with a full-width bar
)


def control_texts(tokenizer: Any) -> tuple[str, ...]:
    """Texts that `tokenizer` (of transformers) takes for control tokens, longest first."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    texts = {str(token.content) for token in added if token.special} | set(tokenizer.all_special_tokens)
    return tuple(sorted((text for text in texts if len(text) > 1), key=lambda text: (-len(text), text)))


def broken_up(text: str, controls: Iterable[str] | None = None) -> str:
    """`text` with a space after the first character of each control token's text.

    Args:
        text: what an environment says.
        controls: texts of control tokens; None for those of common chat formats.
    """
    if controls is None:
        return _COMMON.sub(lambda found: found.group() + " ", text)
    for control in controls:
        if control in text:
            text = text.replace(control, f"{control[0]} {control[1:]}")
    return text


def without_end(text: str, ends: Sequence[str] = END_OF_TURN) -> str:
    """`text` without the end-of-turn tokens at its end, and without the white space after each of them.

    What stands before the first of them was sampled and stays as it is; a text that does not end with one, too.
    """
    rest = len(text)
    while True:
        end = rest
        while end and text[end - 1].isspace():
            end -= 1
        last = next((each for each in ends if each and text.endswith(each, 0, end)), None)
        if last is None:
            return text[:rest]
        rest = end - len(last)
