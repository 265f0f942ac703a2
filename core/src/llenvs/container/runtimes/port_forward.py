"""A TCP port on 127.0.0.1 that leads to a Unix socket: how a container without a network gets a port."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

_CHUNK = 64 * 1024
_ROUNDS = 10


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
            self._socket.listen()  # whoever connects before the thread serves waits instead of being refused
        except OSError:
            self._socket.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
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
        # a plain callback sees each connection at once; a task could be cancelled before it first runs
        server = await asyncio.start_server(self._accept, sock=self._socket)
        await self._end.wait()
        # Accept no more, but let go on what was accepted just now: asyncio leaks a connection whose server closes
        # in between. Then cut all, since waiting for them to end could take for ever.
        self._loop.remove_reader(self._socket.fileno())
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        for writer in self._open:
            writer.transport.abort()
        await asyncio.sleep(0)  # a cut transport closes its socket in the loop's next round
        server.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        task = asyncio.create_task(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._open.discard(writer))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()  # the server is gone; the caller sees a closed connection
            return
        try:
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        finally:
            there_writer.close()
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        return  # one side hung up
    finally:
        writer.close()
