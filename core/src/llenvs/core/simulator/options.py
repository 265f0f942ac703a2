"""Options that every environment over a simulator takes."""

from __future__ import annotations

from pydantic import Field

from llenvs.core.options import EnvironmentOptions
from llenvs.core.simulator.cache import CacheLimits


class SimulatorOptions(EnvironmentOptions):
    """Bounds of the cache (see `CacheLimits`); they decide how fast old states are reached, not what they give."""

    max_live: int = Field(
        default=4,
        ge=1,
        description="Simulators at most (each may be a process); a step beyond that waits for one.",
    )
    max_snapshots: int = Field(default=4096, ge=0, description="Snapshots kept at most.")
    max_snapshot_bytes: int = Field(
        default=64 << 20, ge=0, description="Bytes of snapshots kept at most, all together."
    )
    snapshot_every: int = Field(default=1, ge=1, description="A snapshot is taken after every so many actions.")

    @property
    def limits(self) -> CacheLimits:
        """The bounds as the cache takes them."""
        return CacheLimits(self.max_live, self.max_snapshots, self.max_snapshot_bytes, self.snapshot_every)
