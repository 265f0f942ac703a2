"""LLEnvs: one stateless MDP interface over LLM benchmarks.

``env.reset()`` gives a state, ``env.step(state, action)`` gives a new one and leaves the old one usable.
Names are imported at first use, so that ``import llenvs`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llenvs.core.action import Action
    from llenvs.core.environment import Environment, EnvironmentSpec, StepResult
    from llenvs.core.errors import LLEnvsError
    from llenvs.core.message import ChatMessage
    from llenvs.core.observation import Observation
    from llenvs.core.registry import environment_registry, make
    from llenvs.core.rewards import FormatReward, RewardFunction
    from llenvs.core.signals import RewardType, Signal, SignalBundle
    from llenvs.core.state import State
    from llenvs.core.trajectory import Trajectory, Transition
    from llenvs.integrations.dataset import DatasetProvider
    from llenvs.integrations.scoring import Scorer

__version__ = "0.1.0"

_HOME_OF = {
    "Action": "llenvs.core.action",
    "ChatMessage": "llenvs.core.message",
    "DatasetProvider": "llenvs.integrations.dataset",
    "Environment": "llenvs.core.environment",
    "EnvironmentSpec": "llenvs.core.environment",
    "FormatReward": "llenvs.core.rewards",
    "LLEnvsError": "llenvs.core.errors",
    "Observation": "llenvs.core.observation",
    "RewardFunction": "llenvs.core.rewards",
    "RewardType": "llenvs.core.signals",
    "Scorer": "llenvs.integrations.scoring",
    "Signal": "llenvs.core.signals",
    "SignalBundle": "llenvs.core.signals",
    "State": "llenvs.core.state",
    "StepResult": "llenvs.core.environment",
    "Trajectory": "llenvs.core.trajectory",
    "Transition": "llenvs.core.trajectory",
    "environment_registry": "llenvs.core.registry",
    "make": "llenvs.core.registry",
}

__all__ = [
    "Action",
    "ChatMessage",
    "DatasetProvider",
    "Environment",
    "EnvironmentSpec",
    "FormatReward",
    "LLEnvsError",
    "Observation",
    "RewardFunction",
    "RewardType",
    "Scorer",
    "Signal",
    "SignalBundle",
    "State",
    "StepResult",
    "Trajectory",
    "Transition",
    "__version__",
    "environment_registry",
    "make",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'llenvs' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
