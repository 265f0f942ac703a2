"""LLEnvs adapter for Jericho. Importing it does not import the upstream."""

from llenvs_jericho.adapter import ADAPTER

__all__ = ["ADAPTER"]
