"""Writing to the terminal: consoles that take text literally, and text made safe to show."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_WIDTH_OF_A_PIPE = 140
_NARROWEST_COLUMN = 24
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr.

    Markup, emoji codes and highlighting are off: what benchmarks, models and files say is shown as it is.
    """
    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width; rich's 80 columns would break lines that a reader wants to grep.
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_PIPE
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def visible(text: object) -> str:
    """`text` with control characters spelled out (``\\x1b``), so that it cannot steer the terminal.

    Tabs and line feeds stay. Bidirectional overrides are spelled out as well: they can hide what text says.
    """
    plain = str(text).replace("\r\n", "\n")
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), plain)


def plainly(value: object) -> str:
    """`value` in one line for a person: mappings as ``key=value, ...``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={plainly(each)}" for key, each in value.items())
    return str(value)


def print_json(value: Any) -> None:
    """`value` as indented JSON on stdout; what JSON lacks is written as its `repr`."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=repr) + "\n")


def heading(text: str, *, style: str = "bold") -> Text:
    """A line that opens a section."""
    return Text(visible(text), style=style)


def show_rows(out: Console, rows: Sequence[tuple[str, str | Text]], *, style: str = "cyan") -> None:
    """Labels and what they stand for in two columns, or one below the other where the terminal is narrow.

    Unlike a table it leaves no blanks at the ends of lines and cuts nothing.
    """
    if not rows:
        return
    label_width = max(cell_len(visible(label)) for label, _ in rows) + 4
    value_width = out.width - label_width
    beside = value_width >= _NARROWEST_COLUMN
    for label, value in rows:
        name = Text("  " + visible(label), style=style)
        text = value if isinstance(value, Text) else Text(visible(value))
        lines = text.wrap(out, max(value_width if beside else out.width - 6, 1))
        for line in lines:
            line.rstrip()
        indent = Text(" " * (label_width if beside else 6))
        if beside and lines:
            out.print(Text.assemble(name, " " * (label_width - name.cell_len), lines.pop(0)), soft_wrap=True)
        else:
            out.print(name)
        for line in lines:
            if line.plain:
                out.print(Text.assemble(indent, line), soft_wrap=True)
