"""The command ``llenvs-container``: one environment behind a server."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any

from llenvs.container.errors import error_to_wire
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, LLEnvsError, UpstreamFailed
from llenvs.core.registry import environment_registry
from llenvs_container.log import configure, logger
from llenvs_container.sealing import Sealer, read_key
from llenvs_container.server import serve
from llenvs_container.settings import parse_settings

_OPEN_FILES = 65536


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit status.

    What an adapter prints goes to stderr: stdout is nobody's protocol.
    """
    try:
        settings = parse_settings(arguments)
    except LLEnvsError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    ready = None if settings.ready_fd is None else os.dup(settings.ready_fd)
    sys.stdout.flush()
    os.dup2(2, 1)
    configure(settings.log_level)
    _allow_open_files()
    try:
        environment = _environment(settings.environment)
        sealer = None
        if settings.seal_key_file is not None:
            sealer = Sealer(read_key(settings.seal_key_file), settings.environment)
    except LLEnvsError as error:
        logger.error("cannot serve: %s", error)
        _tell(ready, {"ready": False, "error": error_to_wire(error)})
        return 1

    # what was imported and built stays: the garbage collector need not look at it again and again
    gc.collect()
    gc.freeze()

    def announce(address: str) -> None:
        _tell(ready, {"ready": True, "address": address})

    try:
        asyncio.run(serve(environment, settings, sealer, announce))
    except InvalidOption as error:
        logger.error("cannot serve: %s", error)
        _tell(ready, {"ready": False, "error": error_to_wire(error)})
        return 1
    finally:
        sys.stderr.flush()
    # threads that still run environment code must not keep the process
    os._exit(0)


def _environment(config: dict[str, Any]) -> Environment[Any]:
    options = dict(config)
    name, adapter = options.pop("name"), options.pop("adapter", None)
    try:
        return environment_registry.get(name, adapter, **options)
    except LLEnvsError:
        raise
    except Exception as error:  # an adapter of someone else may fail in any way
        logger.exception("the environment cannot be built")
        raise UpstreamFailed(f"{adapter or ''}/{name}".lstrip("/"), "building the environment", error) from error


def _tell(descriptor: int | None, message: dict[str, Any]) -> None:
    if descriptor is not None:
        os.write(descriptor, json.dumps(message).encode("ascii") + b"\n")
        os.close(descriptor)


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
