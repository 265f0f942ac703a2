"""What a person reads when something goes wrong: one sentence, and an exit status for scripts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

P = ParamSpec("P")
R = TypeVar("R")

UNEXPECTED = 1
"""Exit status of a fault in the program."""
REFUSED = 2
"""Exit status of an error with a known cause: bad input, a missing key, a server that does not answer."""
INTERRUPTED = 130
"""Exit status after Ctrl-C (128 + SIGINT, the shells' convention)."""

DEBUG_VARIABLE = "LLENVS_DEBUG"


def says_failures(command: Callable[P, R]) -> Callable[P, R]:
    """Make `command` end with one sentence on stderr and an exit status where it would raise."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            say("Interrupted.", label="")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
                raise
            raise typer.Exit(_report(error)) from None

    return wrapped


def _report(error: Exception) -> int:
    from llenvs.core.errors import LLEnvsError

    if isinstance(error, LLEnvsError):
        say(str(error))
        return REFUSED
    if isinstance(error, OSError) and error.filename is not None:
        say(f"{error.filename}: {error.strerror}")
        return REFUSED
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    more = f"This is a fault in LLEnvs or in a part it uses; {DEBUG_VARIABLE}=1 llenvs ... shows the traceback."
    say(f"{said}\n{more}", label="Unexpected error")
    return UNEXPECTED


def say(message: str, *, label: str = "Error") -> None:
    """One message on stderr, `label` in front of it."""
    from rich.text import Text

    from llenvs_cli.terminal import console, visible

    text = Text()
    if label:
        text.append(f"{label}: ", style="bold red")
    text.append(visible(message))
    console(stderr=True).print(text, soft_wrap=True)
