"""The runtime "process": the server in a child process with this interpreter."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from llenvs.container.runtimes.local import Interpreter, LocalRuntime
from llenvs.core.errors import NotInstalled


class ProcessRuntime(LocalRuntime):
    """Starts servers with this interpreter and what is installed for it."""

    @contextlib.contextmanager
    def _interpreter(self, environment: Mapping[str, Any]) -> Iterator[Interpreter]:
        if find_spec("llenvs_container") is None:
            raise NotInstalled("the server of isolated environments", "container")
        yield Interpreter(sys.executable, dict(os.environ))
