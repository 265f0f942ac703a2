"""Listening, getting ready, and ending in good order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs_container.app import build_app
from llenvs_container.channel import serving
from llenvs_container.connections import limited
from llenvs_container.dispatcher import Dispatcher
from llenvs_container.gate import Gatekeeper
from llenvs_container.log import logger
from llenvs_container.parent import end_with_parent
from llenvs_container.sealing import Sealer
from llenvs_container.service import Service
from llenvs_container.settings import Settings
from llenvs_container.state_cache import StateCache
from llenvs_container.workers import Workers

_KEEP_ALIVE = 60
"""Seconds for which a connection may be silent between two requests."""
_GRACE = 3.0
"""Seconds for answers still under way, and then for the environment's own `close`."""


async def serve(
    environment: Environment[Any], settings: Settings, sealer: Sealer | None, ready: Callable[[str], None]
) -> None:
    """Serve `environment` until the process is told to stop or its parent is gone.

    Args:
        environment: is closed in the end.
        settings: where, and with which limits.
        sealer: seals hidden state; None leaves it open.
        ready: called with the address once requests are answered.

    Raises:
        InvalidOption: the address cannot be used, or the TLS files are no good.
    """
    cache = StateCache(settings.max_states, settings.max_state_bytes)
    service = Service(environment, cache, sealer, settings.max_request_bytes)
    dispatcher = Dispatcher(
        service, Workers(settings.threads, settings.queue, asyncio.get_running_loop()), settings.timeout
    )
    gatekeeper = Gatekeeper(settings.token)
    app = build_app(
        dispatcher,
        gatekeeper=gatekeeper,
        max_request_bytes=settings.max_request_bytes,
        max_connections=settings.max_connections,
    )
    config = uvicorn.Config(
        app,
        http=limited(settings.head_timeout, settings.max_connections),
        ws=serving(dispatcher, gatekeeper, settings.max_request_bytes),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(_GRACE),
        backlog=1024,
    )
    if settings.tls_cert is not None:
        try:
            config.ssl_certfile, config.ssl_keyfile = str(settings.tls_cert), str(settings.tls_key)
            config.load()
        except (OSError, ValueError) as error:
            raise InvalidOption("--tls-cert", str(settings.tls_cert), f"cannot be used ({error})") from None
    listener, address = _listen(settings)
    server = _Server(config, lambda: ready(address))
    if settings.parent_pid is not None:
        loop = asyncio.get_running_loop()
        end_with_parent(settings.parent_pid, lambda: _end(server, loop, settings.uds))
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises these once more when it has ended; they must not end us before we have cleaned up
        signal.signal(number, lambda *_: None)
    try:
        await server.serve(sockets=[listener])
    finally:
        if settings.uds is not None:
            settings.uds.unlink(missing_ok=True)
        await _close(environment)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _listen(settings: Settings) -> tuple[socket.socket, str]:
    """A bound socket and its address."""
    if settings.uds is not None:
        return _listen_at_path(settings.uds), f"unix://{settings.uds.absolute()}"
    try:
        ((family, kind, protocol, _, where), *_) = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
    except OSError as error:
        raise InvalidOption(
            "--port", settings.port, f"cannot be listened on at {settings.host} ({error.strerror})"
        ) from None
    scheme = "https" if settings.tls_cert is not None else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"{scheme}://{host}:{listener.getsockname()[1]}"
    logger.info("listening on %s", address)
    return listener, address


def _listen_at_path(path: Path) -> socket.socket:
    try:
        if stat.S_ISSOCK(path.stat().st_mode):
            path.unlink()  # left behind by a server that was killed
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # for the owner alone, from the first moment on
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise InvalidOption("--uds", str(path), f"cannot be listened on ({error.strerror or error})") from None
    finally:
        os.umask(before)
    logger.info("listening on %s", path)
    return listener


def _end(server: uvicorn.Server, loop: asyncio.AbstractEventLoop, uds: Path | None) -> None:
    logger.info("the parent process is gone")
    server.should_exit = True
    time.sleep(2 * _GRACE)
    if uds is not None:
        uds.unlink(missing_ok=True)
    os._exit(1)


async def _close(environment: Environment[Any]) -> None:
    done = threading.Event()

    def close() -> None:
        try:
            environment.close()
        except Exception:  # noqa: BLE001 - code of others; the server ends anyway
            logger.exception("closing the environment failed")
        finally:
            done.set()

    # a daemon thread: asyncio would wait for one of its own however long it takes
    threading.Thread(target=close, name="close", daemon=True).start()
    deadline = time.monotonic() + _GRACE
    while not done.is_set() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    if not done.is_set():
        logger.warning("the environment did not close within %g s", _GRACE)
