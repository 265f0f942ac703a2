"""Stateless over stateful: any upstream that changes as an environment whose states are values."""

from llenvs.core.simulator.cache import CacheLimits, SimulatorStats
from llenvs.core.simulator.engine_process import EngineProcess, EngineRefused
from llenvs.core.simulator.environment import SimulatorEnvironment, SimulatorHidden
from llenvs.core.simulator.options import SimulatorOptions
from llenvs.core.simulator.recipe import Recipe, Turn
from llenvs.core.simulator.simulator import Frame, Outside, Simulator, Snapshots

__all__ = [
    "CacheLimits",
    "EngineProcess",
    "EngineRefused",
    "Frame",
    "Outside",
    "Recipe",
    "Simulator",
    "SimulatorEnvironment",
    "SimulatorHidden",
    "SimulatorOptions",
    "SimulatorStats",
    "Snapshots",
    "Turn",
]
