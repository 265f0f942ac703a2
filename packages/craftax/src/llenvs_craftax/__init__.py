"""LLEnvs adapter for Craftax. Importing it does not import the upstream."""

from llenvs_craftax.adapter import ADAPTER

__all__ = ["ADAPTER"]
