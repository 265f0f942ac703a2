"""The command line: which commands there are, and how the process begins and ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from llenvs_cli.commands.info import info
from llenvs_cli.commands.list import list_environments
from llenvs_cli.commands.play import play
from llenvs_cli.commands.prompts import prompts
from llenvs_cli.commands.run import run
from llenvs_cli.commands.sandbox import sandbox
from llenvs_cli.commands.serve import serve

app = typer.Typer(
    name="llenvs",
    help="Evaluate language models on many benchmarks through one interface.",
    epilog="Show the traceback of an error: LLENVS_DEBUG=1 llenvs ...",
    # Help in frames would import most of rich: three times the cost of all the rest of `llenvs --help`.
    rich_markup_mode=None,
    # Tracebacks are handled in `failures`; these would show local variables, keys among them.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
app.command("run")(run)
app.command("list")(list_environments)
app.command("info")(info)
app.command("play")(play)
app.command("prompts")(prompts)
app.command("serve")(serve)
app.add_typer(sandbox, name="sandbox")


def _print_version(wanted: bool) -> None:
    if wanted:
        from llenvs import __version__

        typer.echo(f"llenvs {__version__}")
        raise typer.Exit


@app.callback()
def _llenvs(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Evaluate language models on many benchmarks through one interface."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process.

    Args:
        arguments: those after the command's name; None takes them from `sys.argv`.
    """
    for stream in (sys.stdout, sys.stderr):
        # Text of a benchmark may hold characters that the terminal's encoding lacks.
        with contextlib.suppress(AttributeError):  # a replaced stream need not be a TextIOWrapper
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(args=None if arguments is None else list(arguments), prog_name="llenvs")
    finally:
        _flush_quietly()


def _flush_quietly() -> None:
    """Flush stdout; when its reader is gone (``llenvs list | head -1``), keep Python from complaining at exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
