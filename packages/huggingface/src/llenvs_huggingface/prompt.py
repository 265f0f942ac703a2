"""Prompts: templates over a row, and the default form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption, listed, nearest
from llenvs_huggingface.choices import rendered
from llenvs_huggingface.columns import cell
from llenvs_huggingface.item import Item, text_of

_SLOT = re.compile(r"\{\{([A-Za-z_][\w .-]*)\}\}|\{([A-Za-z_][\w .-]*)\}")
_OWN = ("question", "choices", "context")


def default_prompt(item: Item, shown: Sequence[str]) -> str:
    """Context, question and lettered options, with an empty line between them; what is missing is left out."""
    parts = (item.context, item.question, rendered(shown) if item.choices is not None else "")
    return "\n\n".join(part for part in parts if part)


def check_template(template: str, columns: Sequence[str]) -> None:
    """Every slot must be one of ours or a column.

    Raises:
        InvalidOption: naming the slot and the nearest names.
    """
    valid = [*_OWN, *columns]
    for match in _SLOT.finditer(template):
        name = match[2]
        if name is not None and name not in valid and name.split(".")[0] not in columns:
            close = nearest(name, valid, count=1)
            meant = f"; did you mean {{{close[0]}}}?" if close else ""
            raise InvalidOption(
                "prompt_template",
                template,
                f"{{{name}}} is no column{meant} (write {{{{{name}}}}} for the braces themselves)",
                valid=listed(valid, 40),
            )


def filled(template: str, item: Item, shown: Sequence[str], row: Mapping[str, Any]) -> str:
    """`template` with its slots filled; what was filled in is not searched for slots."""
    own = {"question": item.question, "context": item.context, "choices": rendered(shown)}

    def replaced(match: re.Match[str]) -> str:
        if match[1] is not None:
            return "{" + match[1] + "}"
        name = match[2]
        return own[name] if name in own else text_of(cell(row, name))

    return _SLOT.sub(replaced, template)
