"""The contract: states, actions, observations, signals, environments, trajectories, registry."""

from llenvs.core.action import Action
from llenvs.core.adapter import Adapter, EnvironmentDescription, EnvironmentInfo, OptionInfo
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start, StepResult
from llenvs.core.errors import LLEnvsError
from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.observation import Observation
from llenvs.core.options import EnvironmentOptions, SingleTurnOptions
from llenvs.core.registry import EnvironmentRegistry, environment_registry, make
from llenvs.core.rewards import CallableReward, FormatReward, LengthReward, RewardFunction
from llenvs.core.segmentation import (
    CompositeSegmenter,
    CustomSegmenter,
    LineSegmenter,
    NumberedStepSegmenter,
    ParagraphSegmenter,
    SegmentedEnvironment,
    Segmenter,
    SentenceSegmenter,
    TokenSegmenter,
)
from llenvs.core.signals import RewardType, Signal, SignalBundle
from llenvs.core.single_turn import SingleTurnEnvironment
from llenvs.core.state import State, StateMetadata
from llenvs.core.tool_environment import ToolEnvironment
from llenvs.core.tool_use import ToolEfficiencyReward, ToolValidityReward
from llenvs.core.tools import ToolCall, ToolDefinition, ToolResult, ToolStatus
from llenvs.core.trajectory import Checkpoint, Trajectory, Transition

__all__ = [
    "Action",
    "Adapter",
    "Advance",
    "CallableReward",
    "ChatMessage",
    "Checkpoint",
    "CompositeSegmenter",
    "CustomSegmenter",
    "Environment",
    "EnvironmentDescription",
    "EnvironmentInfo",
    "EnvironmentOptions",
    "EnvironmentRegistry",
    "EnvironmentSpec",
    "FinishReason",
    "FormatReward",
    "Generation",
    "ImageContent",
    "LLEnvsError",
    "LengthReward",
    "LineSegmenter",
    "NumberedStepSegmenter",
    "Observation",
    "OptionInfo",
    "ParagraphSegmenter",
    "RewardFunction",
    "RewardType",
    "SegmentedEnvironment",
    "Segmenter",
    "SentenceSegmenter",
    "Signal",
    "SignalBundle",
    "SingleTurnEnvironment",
    "SingleTurnOptions",
    "Start",
    "State",
    "StateMetadata",
    "StepResult",
    "TokenLogprob",
    "TokenSegmenter",
    "ToolCall",
    "ToolDefinition",
    "ToolEfficiencyReward",
    "ToolEnvironment",
    "ToolResult",
    "ToolStatus",
    "ToolValidityReward",
    "Trajectory",
    "Transition",
    "Usage",
    "environment_registry",
    "make",
]
