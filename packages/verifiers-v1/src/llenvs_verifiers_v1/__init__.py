"""LLEnvs adapter for Verifiers v1 (0.4). Importing it does not import the upstream."""

from llenvs_verifiers_v1.adapter import ADAPTER

__all__ = ["ADAPTER"]
