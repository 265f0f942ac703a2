"""llama.cpp's own HTTP server, run inside this process on a free port of 127.0.0.1."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.inference.errors import EngineUnavailable, ModelNotFound
from llenvs_llamacpp.gguf import TOKENS, NotGGUF, control_tokens, read_metadata, trained_context
from llenvs_llamacpp.threads import default_threads, stop_spinning

DEFAULT_CONTEXT = 4096
"""Tokens of context of one request where nothing else is said and the model was trained with as many."""


@dataclass(frozen=True)
class ServerSettings:
    """How to run the engine; the meaning of each is in `LlamaCppBackend`."""

    n_ctx: int | None = None
    slots: int = 4
    threads: int | None = None
    chat_template: str | None = None
    http_threads: int = 16
    verbosity: int = 0
    engine: Mapping[str, Any] = field(default_factory=dict)


class EmbeddedServer:
    """One running server with one loaded model.

    Attributes:
        url: ``http://127.0.0.1:<port>``.
        api_key: what a request must carry as bearer token; drawn for each server, so that other users of the
            machine can neither use the model nor read prompts.
        control_text: matches the texts of the model's control tokens; None when it has none.
        n_vocab: tokens in the vocabulary.
        n_ctx: tokens of context of one request.
        threads: that it computes with.
    """

    def __init__(self, path: Path, alias: str, settings: ServerSettings) -> None:
        try:
            metadata = read_metadata(path)
        except NotGGUF as error:
            raise ModelNotFound("llamacpp", f"{path} is no GGUF file: {error}") from None
        except OSError as error:
            raise ModelNotFound("llamacpp", f"{path} cannot be read: {error.strerror or error}") from None
        engine = import_engine()
        trained = trained_context(metadata)
        tokens = control_tokens(metadata)
        self.control_text = re.compile("|".join(map(re.escape, tokens))) if tokens else None
        self.n_vocab = len(metadata.get(TOKENS, ()))
        self.n_ctx = settings.n_ctx or min(DEFAULT_CONTEXT, trained or DEFAULT_CONTEXT)
        self.threads = settings.threads or default_threads(_spinning_is_off)
        self.api_key = secrets.token_urlsafe(24)

        params = engine.CommonParams()
        params.model.path = str(path)
        params.model_alias = {alias}
        params.api_keys = [self.api_key]
        params.n_parallel = settings.slots
        params.n_ctx = self.n_ctx * settings.slots
        params.kv_unified = False  # a shared cache would let neighbours change logits
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.n_threads_http = settings.http_threads
        params.ui = False
        params.verbosity = settings.verbosity
        if settings.chat_template is not None:
            params.chat_template = settings.chat_template
        for name, value in settings.engine.items():
            _set(params, name, value)
        try:
            self._server = engine.Server(params)
        except RuntimeError as error:
            raise EngineUnavailable(
                "llamacpp",
                f"llama.cpp could not load {path} with n_ctx={self.n_ctx}, slots={settings.slots} ({error}); "
                "verbosity=3 shows its log",
            ) from None
        self.url: str = self._server.listening_address
        _running.add(self)

    def stop(self) -> None:
        """Stop it; twice is fine. Its clients' connections must be closed before: it waits for open requests."""
        self._server = None

    def abandon(self) -> None:
        """For the child after a fork, where the server's threads do not exist: never let its destructor run, which
        would wait for them for ever."""
        if self._server is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))
            self._server = None


_running: weakref.WeakSet[EmbeddedServer] = weakref.WeakSet()
_import_lock = threading.Lock()
_spinning_is_off = False


def import_engine() -> Any:
    """The module ``xllamacpp``.

    Raises:
        EngineUnavailable: it or its system library is missing; with what to install.
    """
    global _spinning_is_off
    with _import_lock:
        import sys

        if "xllamacpp" not in sys.modules:
            _spinning_is_off = stop_spinning()
        try:
            import xllamacpp
        except ImportError as error:
            raise EngineUnavailable("llamacpp", _missing(error)) from error
        return xllamacpp


def _missing(error: ImportError) -> str:
    if "libgomp" in str(error):
        return (
            f"llama.cpp needs the system library libgomp, which cannot be loaded ({error}); install it with "
            "apt-get install libgomp1 (Debian, Ubuntu), dnf install libgomp (Fedora, RHEL) or "
            "zypper install libgomp1 (openSUSE)"
        )
    if error.name == "xllamacpp":
        return "the package xllamacpp is not installed; run: pip install 'llenvs[llamacpp]'"
    return f"the package xllamacpp cannot be loaded here: {error}"


def _set(params: Any, name: str, value: Any) -> None:
    valid = [each for each in dir(params) if not each.startswith("_")]
    if name not in valid:
        raise UnknownOption(name, valid, "engine parameters of backend llamacpp")
    try:
        setattr(params, name, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidOption(f"engine.{name}", value, str(error)) from None


def _abandon_all() -> None:
    for server in list(_running):
        server.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
