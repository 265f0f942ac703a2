"""Checks: a promise in words, the function that looks for breaches of it, and what must hold before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llenvs.testing.subject import Subject

Body = Callable[["Subject"], Iterable[str]]


class NotApplicable(Exception):
    """Raised by a check that does not apply; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise of the contract.

    Attributes:
        name: the test is called ``test_<name>``.
        title: the promise.
        needs: checks that must hold first. While one of them fails this one is skipped, so that a fault is
            reported once, where it is, and not once more by everything that stands on it.
        find: yields a text for each breach that it finds.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    find: Body


def check(title: str, *, needs: Iterable[str] = ()) -> Callable[[Body], Check]:
    """Make a check of a function; its name is the function's."""

    def made(body: Body) -> Check:
        return Check(body.__name__, title, tuple(needs), body)

    return made
