"""Sealed hidden state: encrypted and authenticated with a key that never leaves the server.

AES-SIV (RFC 5297): deterministic, so equal states stay equal when sealed, and bound to the rest of the state and
to the environment, so that no part of a sealed state can be changed or moved to another one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from llenvs.container.errors import StateRefused
from llenvs.core.encoding import canonical, loads
from llenvs.core.errors import InvalidOption
from llenvs.core.state import SealedHidden, State

KEY_BYTES = 64
"""AES-256-SIV: two keys of 256 bits."""


class Sealer:
    """Seals and unseals the states of one environment.

    Args:
        key: 64 random bytes.
        environment: what is served, ``{"name", "adapter", **options}``; states of another one are refused.
    """

    def __init__(self, key: bytes, environment: Mapping[str, Any]) -> None:
        self._cipher = AESSIV(key)
        self._environment = canonical(dict(environment)).encode("ascii")

    def seal(self, state: State[Any], hidden: str) -> State[Any]:
        """`state` with its hidden part, whose JSON text is `hidden`, sealed."""
        sealed = self._cipher.encrypt(hidden.encode("ascii"), self._bound(state))
        return replace(state, hidden=SealedHidden(sealed))

    def unseal(self, state: State[Any]) -> State[Any]:
        """The state that was sealed.

        Raises:
            StateRefused: it is not sealed, was altered, or is of another environment or key.
        """
        if not isinstance(state.hidden, SealedHidden):
            raise StateRefused("this server takes states with sealed hidden state alone, as it gave them")
        try:
            text = self._cipher.decrypt(state.hidden.data, self._bound(state))
        except (InvalidTag, ValueError):
            raise StateRefused(
                "the state was altered, or sealed for another environment or by a server with another key"
            ) from None
        return replace(state, hidden=loads(text))

    def _bound(self, state: State[Any]) -> list[bytes]:
        return [self._environment, canonical((state.observation, state.metadata)).encode("ascii")]


def read_key(path: Path) -> bytes:
    """The key in the file `path`, which is made, readable by its owner alone, when it does not exist.

    Raises:
        InvalidOption: the file cannot be read or made, or does not hold 64 bytes.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise InvalidOption("seal-key-file", str(path), f"cannot be made ({error.strerror})") from None
    else:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
    try:
        key = path.read_bytes()
    except OSError as error:
        raise InvalidOption("seal-key-file", str(path), f"cannot be read ({error.strerror})") from None
    if len(key) != KEY_BYTES:
        raise InvalidOption("seal-key-file", str(path), f"must hold {KEY_BYTES} random bytes")
    return key
