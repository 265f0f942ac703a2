"""LLEnvs adapter for aviary. Importing it does not import the upstream."""

from llenvs_aviary.adapter import ADAPTER

__all__ = ["ADAPTER"]
