"""Many steps in one run of the game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from llenvs_craftax.game import Game, Outcome
from llenvs_craftax.hidden import CraftaxHidden
from llenvs_craftax.live import LiveState

SIZES = (8, 64)
"""Numbers of states that there are programs for."""


class Transitions:
    """Outcomes that are known before the step is taken, for the block of `known` and its thread alone."""

    def __init__(self) -> None:
        self._known: ContextVar[Mapping[Any, Outcome] | None] = ContextVar("known", default=None)

    @staticmethod
    def key(hidden: CraftaxHidden, action: int) -> Any:
        """What an outcome depends on, in one environment."""
        return tuple(hidden["arrays"].items()), hidden["seed"], hidden["branch"], action

    def get(self, hidden: CraftaxHidden, action: int) -> Outcome | None:
        """The outcome, if it is known."""
        known = self._known.get()
        return None if known is None else known.get(self.key(hidden, action))

    @contextmanager
    def known(self, outcomes: Mapping[Any, Outcome]) -> Iterator[None]:
        """Make `outcomes` known."""
        token = self._known.set(outcomes)
        try:
            yield
        finally:
            self._known.reset(token)


def taken_at_once(
    game: Game, steps: Sequence[tuple[CraftaxHidden, LiveState, int]], key_mode: int, parameters: Any
) -> list[Outcome]:
    """The outcome of each step (hidden state, the same made ready, action), in as few runs as may be."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(steps):
        part = steps[len(outcomes) : len(outcomes) + SIZES[-1]]
        size = next(size for size in SIZES if size >= len(part))
        padded = [*part, *[part[-1]] * (size - len(part))]
        made = game.step_many(
            [live.raw for _, live, _ in padded],
            [hidden["seed"] for hidden, _, _ in padded],
            [action for _, _, action in padded],
            key_mode,
            [hidden["branch"] for hidden, _, _ in padded],
            parameters,
        )
        outcomes += made[: len(part)]
    return outcomes
