"""The runtime "venv": the server in an environment of its own, with the adapter and the Python that it needs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from llenvs.container.runtimes.local import Interpreter, LocalRuntime
from llenvs.container.sandbox_plan import plan_sandbox
from llenvs.container.sandboxes import Sandbox, open_sandbox
from llenvs.container.uv import clean_environment
from llenvs.core.errors import InvalidOption


class VenvRuntime(LocalRuntime):
    """Starts servers in the sandbox of their adapter. Making one is not part of the start timeout."""

    @contextlib.contextmanager
    def _interpreter(self, environment: Mapping[str, Any]) -> Iterator[Interpreter]:
        adapter = environment.get("adapter")
        if not isinstance(adapter, str):
            raise InvalidOption("adapter", adapter, "must be given for runtime 'venv', which installs it")
        plan = plan_sandbox(adapter, python=self._config.python, packages=self._config.packages)
        with open_sandbox(plan) as (sandbox, lock_fd):
            yield Interpreter(str(sandbox.interpreter), sandbox_variables(sandbox), hold_fds=(lock_fd,))


def sandbox_variables(sandbox: Sandbox) -> dict[str, str]:
    """The environment variables of this process, as they are when `sandbox` is active."""
    variables = clean_environment(os.environ)
    variables["VIRTUAL_ENV"] = str(sandbox.path)
    # What the first server compiles serves all later ones, whose start it halves. It stays in the sandbox: a
    # checkout that is installed editable is not ours to write to.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables["PYTHONPYCACHEPREFIX"] = str(sandbox.path / "bytecode")
    variables["PATH"] = f"{sandbox.interpreter.parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
    return variables
