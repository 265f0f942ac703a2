"""The command line of the server."""

from __future__ import annotations

import argparse
import ipaddress
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llenvs.core.encoding import decode
from llenvs.core.errors import EncodingFailed, InvalidOption

_DESCRIPTION = "Serve one environment over HTTP and WebSocket, without sessions."
_EPILOG = """examples:
  llenvs-container --config '{"name": "leg_counting", "adapter": "reasoning_gym", "size": 100}' --port 8080
  curl -s localhost:8080/reset -d '{"options": {"task_index": 3}}'
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says; see ``llenvs-container --help``."""

    environment: dict[str, Any]
    host: str
    port: int
    uds: Path | None
    token: str | None
    seal_key_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    ready_fd: int | None
    parent_pid: int | None
    threads: int
    queue: int
    timeout: float | None
    max_request_bytes: int
    max_connections: int
    head_timeout: float
    max_states: int
    max_state_bytes: int
    log_level: str


def parse_settings(arguments: Sequence[str] | None = None) -> Settings:
    """The settings in `arguments` (None: of this process).

    Raises:
        InvalidOption: naming the argument.
        SystemExit: for ``--help`` and what argparse refuses.
    """
    args = _parser().parse_args(arguments)
    token = _token(args.token_file)
    if args.uds is None and token is None and not _is_loopback(args.host):
        raise InvalidOption(
            "--host",
            args.host,
            "an address that others can reach needs --token-file",
            valid="127.0.0.1, ::1, localhost",
        )
    if (args.tls_cert is None) != (args.tls_key is None):
        raise InvalidOption("--tls-cert", str(args.tls_cert), "goes together with --tls-key")
    return Settings(
        environment=_environment(args.config),
        host=args.host,
        port=args.port,
        uds=args.uds,
        token=token,
        seal_key_file=args.seal_key_file,
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
        ready_fd=args.ready_fd,
        parent_pid=args.parent_pid,
        threads=args.threads,
        queue=args.queue,
        timeout=args.timeout or None,
        max_request_bytes=args.max_request_bytes,
        max_connections=args.max_connections,
        head_timeout=args.head_timeout,
        max_states=args.max_states,
        max_state_bytes=args.max_state_bytes,
        log_level=args.log_level,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="llenvs-container",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--config",
        required=True,
        metavar="JSON",
        help='the environment: {"name": ..., "adapter": ..., options}; or @FILE',
    )
    where = parser.add_argument_group("where it listens")
    add = where.add_argument
    add("--uds", type=Path, metavar="PATH", help="a Unix socket, for the user who starts the server alone")
    add("--host", default="127.0.0.1", help="an address other than this machine's own needs a token (%(default)s)")
    add("--port", type=_integer(0, 65535), default=8080, help="0 takes a free one (%(default)s)")
    add("--tls-cert", type=Path, metavar="FILE", help="PEM certificate chain")
    add("--tls-key", type=Path, metavar="FILE", help="PEM private key")
    safety = parser.add_argument_group("safety")
    add = safety.add_argument
    add("--token-file", type=Path, metavar="FILE", help="holds the bearer token that clients must show")
    add(
        "--seal-key-file", type=Path, metavar="FILE", help="seal hidden state with the key in it (made if missing)"
    )
    limits = parser.add_argument_group("limits")
    add = limits.add_argument
    add("--threads", type=_integer(1, 4096), default=32, help="steps that run at once (%(default)s)")
    add(
        "--queue",
        type=_integer(1, 1 << 20),
        default=1024,
        help="requests that may wait for a thread (%(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="for one request; 0 for no limit (%(default)s)",
    )
    add("--max-request-bytes", type=_integer(1024, 1 << 31), default=32 << 20, help="(%(default)s)")
    add("--max-connections", type=_integer(1, 1 << 20), default=4096, help="(%(default)s)")
    add(
        "--head-timeout",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="for the head of a request (%(default)s)",
    )
    add("--max-states", type=_integer(0, 1 << 24), default=8192, help="states held by key (%(default)s)")
    add("--max-state-bytes", type=_integer(0, 1 << 40), default=256 << 20, help="and their JSON (%(default)s)")
    process = parser.add_argument_group("process")
    add = process.add_argument
    add("--ready-fd", type=_integer(0, 1 << 20), metavar="N", help="descriptor that gets a JSON line once ready")
    add("--parent-pid", type=_integer(1, 1 << 31), metavar="PID", help="end when this process does")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"], help="(%(default)s)")
    return parser


def _integer(low: int, high: int) -> Any:
    def integer(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be from {low} to {high}")
        return value

    return integer


def _environment(text: str) -> dict[str, Any]:
    if text.startswith("@"):
        try:
            text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text("utf-8")
        except OSError as error:
            raise InvalidOption("--config", text, f"cannot be read ({error.strerror})") from None
    try:
        value = decode(json.loads(text))
    except (ValueError, RecursionError, EncodingFailed) as error:
        raise InvalidOption("--config", text, f"is no JSON ({error})") from None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InvalidOption("--config", value, 'must be an object with a name: {"name": ..., "adapter": ...}')
    if "container" in value:
        raise InvalidOption("--config", value, "cannot hold 'container': the environment runs in this server")
    return value


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        token = file.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise InvalidOption("--token-file", str(file), f"cannot be read ({error})") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise InvalidOption("--token-file", str(file), "must hold a token of at least 16 visible ASCII characters")
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
