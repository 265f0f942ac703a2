"""The event loop of callers without one; it lives in the core, since isolated environments share it."""

from llenvs.core.loop import PerLoop, run_sync, shared_loop

__all__ = ["PerLoop", "run_sync", "shared_loop"]
