"""A backend and its options."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from llenvs.inference.backends import BackendDescription
from llenvs_cli.terminal import heading, visible
from llenvs_cli.views.options import show_options


def show_backend(out: Console, described: BackendDescription) -> None:
    """Print what it is, its options, and where they stand in a configuration."""
    out.print(heading(described.name))
    for paragraph in described.description.split("\n\n"):
        out.print(Text(visible(" ".join(paragraph.split()))))
    out.print()
    show_options(out, described.options)
    out.print(f"\nIn a configuration: model: {{backend: {described.name}, ...}}", style="dim", markup=False)
