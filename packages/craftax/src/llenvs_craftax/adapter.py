"""The adapter: which environments there are."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import NotInstalled
from llenvs.core.options import EnvironmentOptions
from llenvs_craftax.options import ClassicOptions, CraftaxOptions, FullOptions
from llenvs_craftax.variants import ENTRIES


class CraftaxAdapter(Adapter):
    """Craftax and Craftax Classic, in words, as JSON or as images."""

    name = "craftax"
    description = "Craftax and Craftax Classic: open-ended survival games in JAX, as text, symbols or images"
    options = CraftaxOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """Both games in each form."""
        return [
            EnvironmentInfo(name, self.name, entry.description, entry.variant, is_multi_turn=True)
            for name, entry in ENTRIES.items()
        ]

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """Those of the game."""
        return ClassicOptions if name in ENTRIES and ENTRIES[name].variant == "classic" else FullOptions

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: with the nearest names.
            NotInstalled: Craftax or JAX is missing.
            InvalidOption: a goal that is no achievement of the game.
        """
        from llenvs_craftax.environment import CraftaxEnvironment

        self.info(name)
        if find_spec("craftax") is None or find_spec("jax") is None:
            raise NotInstalled("Craftax", "craftax")
        return CraftaxEnvironment(name, ENTRIES[name], options)


ADAPTER = CraftaxAdapter()
