"""A TCP port on 127.0.0.1 that leads to a Unix socket: how a container without a network gets a port."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

_CHUNK = 64 * 1024


class PortForward:
    """Forwards connections to 127.0.0.1:`port` to the Unix socket `target`, in a thread, until `close`.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, port: int, target: Path) -> None:
        self._target = str(target)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="llenvs-port-forward", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port and its connections. Twice is fine."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connect, sock=self._socket)
        await self._end.wait()
        server.close()  # the runner cancels the connections; waiting for them to end could take for ever

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()  # the server is gone; the caller sees a closed connection
            return
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        return  # one side hung up
    finally:
        writer.close()
