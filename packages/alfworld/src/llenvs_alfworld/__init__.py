"""LLEnvs adapter for ALFWorld. Importing it does not import the upstream."""

from llenvs_alfworld.adapter import ADAPTER

__all__ = ["ADAPTER"]
