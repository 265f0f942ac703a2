"""What the command line of every server has in common."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llenvs.container.config import ContainerConfig
from llenvs.container.runtimes.run_directory import RunDirectory


def label_of(environment: Mapping[str, Any]) -> str:
    """What messages call the environment: ``adapter/name``."""
    return "/".join(str(environment[key]) for key in ("adapter", "name") if environment.get(key) is not None)


def seal_key() -> bytes:
    """A new key for sealing hidden state (AES-256-SIV: 64 bytes), for all replicas and restarts of one runtime."""
    return os.urandom(64)


def server_options(
    environment: Mapping[str, Any],
    directory: RunDirectory,
    *,
    seal_key: bytes | None,
    folder: str = ".",
    mode: int = 0o600,
) -> list[str]:
    """Arguments that say what is served. Files that they name are put in `folder` of `directory`, with `mode`."""
    options = ["--config", json.dumps(dict(environment))]
    if seal_key is not None:
        options += ["--seal-key-file", str(directory.write_secret(f"{folder}/seal-key", seal_key, mode))]
    return options


def log_file(config: ContainerConfig, environment: Mapping[str, Any], directory: RunDirectory) -> Path:
    """Where the server's output goes: the run directory, or `log_dir`, where it stays."""
    if config.log_dir is None:
        return directory.path / "log"
    config.log_dir.mkdir(parents=True, exist_ok=True)
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", label_of(environment)) or "server"
    return config.log_dir.absolute() / f"{readable}-{directory.path.name}.log"
