"""The upstream: imported late, under settings of JAX that do not depend on the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from llenvs_craftax.variants import VariantName

THREEFRY_PARTITIONABLE = True
"""How JAX derives many random numbers from one key. With another value equal seeds make other worlds."""


@contextmanager
def settings() -> Iterator[None]:
    """What the upstream is imported and traced under, in this thread and for the block alone.

    All of these change the numbers that come out: how random bits are drawn, the widths of numbers, and where
    the program runs. What is compiled in the block keeps them.
    """
    import jax

    with ExitStack() as stack:
        stack.enter_context(jax.threefry_partitionable(THREEFRY_PARTITIONABLE))
        stack.enter_context(jax.default_prng_impl("threefry2x32"))
        stack.enter_context(jax.enable_x64(False))
        stack.enter_context(jax.numpy_dtype_promotion("standard"))
        stack.enter_context(jax.numpy_rank_promotion("allow"))
        stack.enter_context(jax.disable_jit(False))
        stack.enter_context(jax.default_device(jax.local_devices(backend="cpu")[0]))
        yield


@dataclass(frozen=True)
class Upstream:
    """What the adapter takes from Craftax for one of its games; make it with `load`.

    Attributes:
        variant: which game.
        env: the upstream's symbolic environment, which does not reset itself.
        constants: the module with the upstream's enums and numbers.
        renderer: the module that draws images.
        logic: the module with the rules.
    """

    variant: VariantName
    env: Any
    constants: Any
    renderer: Any
    logic: Any

    @classmethod
    def load(cls, variant: VariantName) -> Upstream:
        """Import the game. Takes seconds."""
        package = "craftax.craftax_classic" if variant == "classic" else "craftax.craftax"
        name = "Craftax-Classic-Symbolic-v1" if variant == "classic" else "Craftax-Symbolic-v1"
        with settings():
            factory = import_module("craftax.craftax_env")
            env = factory.make_craftax_env_from_name(name, auto_reset=False)
            modules = (import_module(f"{package}.{name}") for name in ("constants", "renderer", "game_logic"))
            return cls(variant, env, *modules)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions in lower case; the place is the upstream's number."""
        return _names(self.constants.Action)

    @cached_property
    def achievements(self) -> tuple[str, ...]:
        """Names of the achievements in lower case, as the upstream spells them; the place is its number."""
        return _names(self.constants.Achievement)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """What the upstream's reward gives for each achievement."""
        if self.variant == "classic":
            return (1.0,) * len(self.achievements)
        return tuple(float(weight) for weight in np.asarray(self.constants.ACHIEVEMENT_REWARD_MAP))

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks in lower case; the place is the number in the map."""
        return _names(self.constants.BlockType)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Names of what can lie on a block, in lower case; the place is the number in the item map."""
        return () if self.variant == "classic" else _names(self.constants.ItemType)

    @property
    def view(self) -> tuple[int, int]:
        """Rows and columns of what the player sees."""
        rows, columns = self.constants.OBS_DIM
        return int(rows), int(columns)


def _names(enum: Any) -> tuple[str, ...]:
    names = {member.value: member.name.lower() for member in enum}
    return tuple(names[value] for value in range(len(names)))
