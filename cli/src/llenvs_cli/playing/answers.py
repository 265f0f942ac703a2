"""Reading what a person answers: from a terminal or a pipe, one line or several."""

from __future__ import annotations

import contextlib
import sys

END_OF_ANSWER = "."
"""In multi-line mode, a line that holds this alone sends the answer (as in mail, RFC 5321)."""

_PROMPT = "> "
_CONTINUED = "| "


class AnswerReader:
    """Reads answers from stdin.

    Args:
        multiline: an answer goes on until a line that holds a single ``.``, or the end of input. A first line that
            begins with ``/`` is complete by itself, so that commands work as in single-line mode.
    """

    def __init__(self, *, multiline: bool = False) -> None:
        self.multiline = multiline
        self._terminal = sys.stdin.isatty()
        if self._terminal:
            # Gives `input` line editing and history; some builds of Python lack it.
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401

    def read(self) -> str:
        """The next answer, without its last line end.

        Raises:
            EOFError: the input has ended (Ctrl-D).
        """
        first = self._line(_PROMPT)
        if not self.multiline or first.startswith("/"):
            return first
        lines: list[str] = []
        line = first
        while line != END_OF_ANSWER:
            lines.append(line)
            try:
                line = self._line(_CONTINUED)
            except EOFError:
                break
        return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        if self._terminal:
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        line = line.rstrip("\r\n")
        # A pipe does not echo; with the answers in it the output reads as a transcript.
        sys.stdout.write(f"{prompt}{line}\n")
        sys.stdout.flush()
        return line
