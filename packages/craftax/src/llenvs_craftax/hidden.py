"""The hidden state, and the check of one that came from anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypedDict

from llenvs.core.errors import InvalidAction
from llenvs_craftax.game import Game
from llenvs_craftax.sections import Sections
from llenvs_craftax.variants import VariantName

BRANCHES = 1 << 32
"""A branch is an integer from 0 to below this."""


class CraftaxHidden(TypedDict):
    """Hidden state: the game itself, and what the last step brought.

    Attributes:
        variant: "classic" or "full".
        layout: digest of the arrays' names, types and shapes, so that a state of another release is recognised.
        seed: of the world, and with the timestep of all chance.
        branch: 0, or the number of a branch that meets other chance.
        arrays: the upstream's whole state: compressed bytes by section (see `llenvs_craftax.layout`).
        reward: the upstream's reward of the step that led here.
        unlocked: achievements of that step.
    """

    variant: VariantName
    layout: str
    seed: int
    branch: int
    arrays: Sections
    reward: float
    unlocked: tuple[str, ...]


def checked(hidden: Any, game: Game, environment: str) -> CraftaxHidden:
    """`hidden` as one of this game; its arrays are checked when they are unpacked.

    Raises:
        InvalidAction: it is not, with what is wrong. `environment` is who says so.
    """
    variant, layout = game.upstream.variant, game.layout
    if not isinstance(hidden, Mapping) or "variant" not in hidden:
        raise InvalidAction(f"{environment}: this state belongs to another kind of environment")
    if hidden["variant"] != variant:
        whose = str(hidden["variant"])[:80]
        raise InvalidAction(f"{environment}: this is a state of the game {whose!r}, not of {variant!r}")
    if hidden.get("layout") != layout.digest:
        raise InvalidAction(f"{environment}: this state was made with another release of Craftax")
    seed, branch, arrays = hidden.get("seed"), hidden.get("branch"), hidden.get("arrays")
    for name, value in (("seed", seed), ("branch", branch)):
        if type(value) is not int:
            raise InvalidAction(
                f"{environment}: this state is damaged: {name} is a {type(value).__name__}, no integer"
            )
    if not 0 <= int(branch or 0) < BRANCHES:
        raise InvalidAction(f"{environment}: this state is damaged: branch is not from 0 to {BRANCHES - 1}")
    if not isinstance(arrays, Mapping) or any(type(part) is not bytes for part in arrays.values()):
        raise InvalidAction(f"{environment}: this state is damaged: its arrays are not bytes")
    if type(hidden.get("reward")) is not float or not _are_achievements(hidden.get("unlocked"), game):
        raise InvalidAction(
            f"{environment}: this state is damaged: its reward or achievements are none of this game"
        )
    return hidden  # type: ignore[return-value]  # looked at above


def _are_achievements(names: Any, game: Game) -> bool:
    return type(names) is tuple and all(name in game.upstream.achievements for name in names)


def derived_branch(hidden: CraftaxHidden, number: int) -> int:
    """A branch for the `number`-th of a fork; others for every fork, and never 0."""
    text = f"{hidden['branch']}/{number}/".encode() + b"".join(hidden["arrays"].values())
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little") or 1
