"""A hub in small: answers what `datasets` and `huggingface_hub` ask about one repository, from a snapshot."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hub_layout import COMMIT


@contextmanager
def serving(repository: str, snapshot: Path, *, gated: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Gives the address for HF_ENDPOINT, and the list of paths asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            asked.append(path)
            api, files = f"/api/datasets/{repository}", f"/datasets/{repository}/resolve/"
            if not path.startswith((api, files)):
                self._error(404, "RepoNotFound")
            elif gated:
                self._error(401, "GatedRepo")
            elif path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
                names = [{"rfilename": str(file.relative_to(snapshot))} for file in _files(snapshot)]
                self._json({"id": repository, "sha": COMMIT, "private": False, "tags": [], "siblings": names})
            elif path.startswith(f"{api}/tree/"):
                self._json([_entry(snapshot, file) for file in sorted(snapshot.rglob("*"))])
            elif path.startswith(files):
                self._file(snapshot / path.removeprefix(files).split("/", 1)[1])
            else:
                self._error(404, "RevisionNotFound")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            wanted = json.loads(body)["paths"] if body.startswith("{") else body.split("&")
            names = [unquote(name.removeprefix("paths=")) for name in wanted]
            self._json([_entry(snapshot, snapshot / n) for n in names if n and (snapshot / n).exists()])

        def _file(self, file: Path) -> None:
            if not file.is_file():
                return self._error(404, "EntryNotFound")
            data = file.read_bytes()
            first, last = 0, len(data) - 1
            if self.headers.get("Range"):
                low, _, high = self.headers["Range"].removeprefix("bytes=").partition("-")
                first, last = int(low or 0), min(int(high or last), last)
            self.send_response(206 if self.headers.get("Range") else 200)
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self._body(data[first : last + 1])
            return None

        def _json(self, value: Any) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self._body(json.dumps(value).encode())

        def _error(self, status: int, code: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self._body(b"")

        def _body(self, data: bytes) -> None:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _entry(folder: Path, path: Path) -> dict[str, Any]:
    name = str(path.relative_to(folder))
    if path.is_dir():
        return {"type": "directory", "oid": "0" * 40, "size": 0, "path": name}
    return {
        "type": "file",
        "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
        "path": name,
    }
