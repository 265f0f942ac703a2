"""LLEnvs adapter for ReasoningGym. Importing it does not import the upstream."""

from llenvs_reasoning_gym.adapter import ADAPTER

__all__ = ["ADAPTER"]
