"""Which environments there are, told without importing the upstream."""

from __future__ import annotations

from llenvs.core.errors import LLEnvsError, UnknownEnvironment
from llenvs_tau.upstream import require_upstream

DOMAINS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mock": ("a to-do list of ten records, for trying things out", ()),
    "airline": ("bookings of an airline: change, cancel, compensate", ("train", "test")),
    "retail": ("orders of a shop: cancel, modify, return, exchange", ("train", "test")),
    "telecom": (
        "phone support: agent and user both act, on the account and on the phone",
        ("small", "train", "test", "full"),
    ),
    "telecom-workflow": (
        "telecom with the support manual written as a workflow",
        ("small", "train", "test", "full"),
    ),
}
"""Domains of the wheel: name -> (description, splits besides the default one, which is train and test)."""
SOLO_DOMAINS = frozenset({"mock", "telecom", "telecom-workflow"})
"""Domains that the upstream lets an agent do without a user."""


def domain_names() -> list[str]:
    """Domains of the wheel, and those that the installed release has besides."""
    try:
        folder = require_upstream() / "domains"
    except LLEnvsError:
        return list(DOMAINS)
    more = sorted(path.parent.name for path in folder.glob("*/environment.py") if path.parent.name not in DOMAINS)
    return [*DOMAINS, *more]


def split_name(name: str) -> tuple[str, str | None]:
    """``domain`` or ``domain:split`` as ``(domain, split)``.

    Raises:
        UnknownEnvironment: no such domain or split, with the nearest names.
    """
    domain, _, split = name.partition(":")
    names = domain_names()
    known = DOMAINS.get(domain)
    if domain not in names:
        raise UnknownEnvironment(name, names, "list them with: llenvs list tau")
    if split and known is not None and split not in ("base", *known[1]):
        raise UnknownEnvironment(
            name, [domain, *(f"{domain}:{each}" for each in known[1])], "splits of the domain"
        )
    return domain, split or None
