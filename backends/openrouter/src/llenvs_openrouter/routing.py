"""Which of its providers OpenRouter may send a request to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownOption

ROUTING = (
    "allow_fallbacks",
    "data_collection",
    "ignore",
    "max_price",
    "only",
    "order",
    "quantizations",
    "require_parameters",
    "sort",
    "zdr",
)
"""Members of the API's ``provider``. Others may go in ``extra_body``, unchecked."""


def routing(provider: Mapping[str, Any] | None) -> dict[str, Any]:
    """The API's ``provider``. Unless it is said otherwise, only providers are used that know all parameters of a
    request: the others would ignore what they do not know, a seed or logprobs, without a word.

    Raises:
        UnknownOption, InvalidOption: the API would ignore it.
    """
    if provider is not None and not isinstance(provider, Mapping):
        raise InvalidOption("provider", provider, "must be a mapping", valid=", ".join(ROUTING))
    for key in provider or {}:
        if key not in ROUTING:
            raise UnknownOption(str(key), ROUTING, "options of provider")
    return {"require_parameters": True, **(provider or {})}


def is_pinned(provider: Mapping[str, Any]) -> bool:
    """Whether all requests go to one provider: else two of them may be answered by two versions of a model."""
    if len(provider.get("only") or ()) == 1:
        return True
    return len(provider.get("order") or ()) == 1 and provider.get("allow_fallbacks") is False
