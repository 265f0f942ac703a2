"""How the upstream finds the answer in a response."""

from __future__ import annotations

from collections.abc import Callable

from llenvs_gem.catalogue import Kind
from llenvs_gem.upstream import module

Extraction = Callable[[str], str | None]


def native_extraction(kind: Kind) -> Extraction:
    r"""The upstream's own: the last ``\boxed{...}`` (math, logic, rg), ``<answer>...</answer>`` (qa) or fenced
    block (code). None when there is none."""
    parsing = module("gem.utils.parsing")
    match kind:
        case Kind.CODE:
            code: Extraction = parsing.extract_code_from_model
            return code
        case Kind.QA:
            tagged: Extraction = parsing.extract_last_tagged_answer
            return lambda text: _up_to_the_last_tag(tagged, text)
    boxed: Extraction = parsing.extract_last_boxed_answer
    return boxed


def _up_to_the_last_tag(extract: Extraction, text: str) -> str | None:
    # The search is quadratic in opening tags that nothing closes; what follows the last closing tag cannot match.
    end = text.rfind("</answer>")
    return None if end < 0 else extract(text[: end + len("</answer>")])
