"""LLEnvs adapter for GEM. Importing it does not import the upstream."""

from llenvs_gem.adapter import ADAPTER

__all__ = ["ADAPTER"]
