"""Inference: the backend protocol, messages, sampling, prompts. Backends are in `llenvs.inference.backends`."""

from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.inference.backend import Backend
from llenvs.inference.budget import Budget
from llenvs.inference.cache import GenerationCache
from llenvs.inference.errors import BackendError
from llenvs.inference.judge import JUDGE_TEMPLATES, JudgeReward, JudgeTemplate
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.retry import RetryPolicy
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.scripted import ScriptedBackend
from llenvs.inference.tool_calls import HermesToolCallParser, PromptedToolsBackend

__all__ = [
    "JUDGE_TEMPLATES",
    "Backend",
    "BackendError",
    "Budget",
    "Capabilities",
    "ChatMessage",
    "FinishReason",
    "Generation",
    "GenerationCache",
    "GenerationRequest",
    "HermesToolCallParser",
    "ImageContent",
    "JudgeReward",
    "JudgeTemplate",
    "PromptedToolsBackend",
    "RetryPolicy",
    "SamplingParams",
    "ScriptedBackend",
    "TokenLogprob",
    "Usage",
]
