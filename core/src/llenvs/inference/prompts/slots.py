"""Slots: ``{name}`` in a text, filled by name and by nothing else.

``str.format`` is not used, because questions and LaTeX are full of braces and because its attribute access
(``{question.__class__}``) has no place in a prompt. Here ``{name}`` is a slot only when the braces hold one
identifier; every other brace stays as it is. ``{{name}}`` prints ``{name}``. A filled-in value is never
searched for slots again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from llenvs.core.errors import UnknownPrompt

_SLOT = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


class UnknownSlot(UnknownPrompt):
    """A text uses, or was given a value for, a slot that does not exist."""

    kind = "slot"


def slot_names(text: str) -> tuple[str, ...]:
    """The names of the slots in `text`, each once, in order of appearance."""
    return tuple(dict.fromkeys(m[2] for m in _SLOT.finditer(text) if m[2] is not None))


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with each slot that `values` names replaced; slots it does not name stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        escaped, name = match[1], match[2]
        if escaped is not None:
            return "{" + escaped + "}"
        return values.get(name, match[0])

    return _SLOT.sub(replaced, text)
