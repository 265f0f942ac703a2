"""The server's log: lines on stderr, where the adapter's own output goes too."""

import logging
import sys

logger = logging.getLogger("llenvs_container")


def configure(level: str) -> None:
    """Log to stderr from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("llenvs_container", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers[:] = [handler]
        log.setLevel(level.upper())
        log.propagate = False
