"""The child's side of `EngineProcess`: ``python -m llenvs.core.simulator.engine_child module:function``."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from typing import Any, BinaryIO

from llenvs.core.simulator.engine_process import GRACE, LENGTHS


def serve(target: str, requests: BinaryIO, answers: int) -> None:
    """Answer requests on `requests` to the file descriptor `answers` until they end."""
    handler: Any = None
    while True:
        lengths = requests.read(LENGTHS.size)
        if len(lengths) < LENGTHS.size:
            return
        size, rest = LENGTHS.unpack(lengths)
        header = json.loads(requests.read(size))
        payload = requests.read(rest)
        _set_timer(header.pop("limit"))
        raw = b""
        try:
            if handler is None:
                module, _, name = target.partition(":")
                handler = getattr(importlib.import_module(module), name)(**header["arguments"])
                answer = {"ok": None}
                gc.freeze()  # what was loaded stays; the collector need not look at it again
            else:
                result, raw = handler(header, payload)
                answer = {"ok": result}
            text = json.dumps(answer).encode()
        except Exception as error:  # noqa: BLE001 - the parent reports whatever the engine raised
            text, raw = json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}).encode(), b""
        _set_timer(0.0)
        data = memoryview(LENGTHS.pack(len(text), len(raw)) + text + raw)
        while data:
            data = data[os.write(answers, data) :]


def _set_timer(limit: float) -> None:
    # SIGALRM is left to its default, which ends the process even inside one long C call; 0 stops the timer
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, limit + GRACE if limit else 0.0)


def main() -> None:
    """Serve on stdin and stdout; whatever the engine prints goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
