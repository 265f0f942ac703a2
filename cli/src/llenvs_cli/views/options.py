"""Options of an environment or a backend: name, type, default, and what each does."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from llenvs.core.adapter import OptionInfo
from llenvs_cli.terminal import heading, visible


def show_options(out: Console, options: Iterable[OptionInfo]) -> None:
    """Print them under a heading, each description indented below its option."""
    out.print(heading("Options"))
    none = True
    for option in options:
        none = False
        out.print(
            Text.assemble(("  " + visible(option.name), "cyan"), visible(_type_and_default(option))),
            soft_wrap=True,
        )
        described = " ".join(option.description.split())
        for line in Text(visible(described), style="dim").wrap(out, max(out.width - 6, 1)):
            line.rstrip()
            out.print(Text.assemble("      ", line), soft_wrap=True)
    if none:
        out.print("  none")


def _type_and_default(option: OptionInfo) -> str:
    return f": {option.type}, required" if option.default == "required" else f": {option.type} = {option.default}"
