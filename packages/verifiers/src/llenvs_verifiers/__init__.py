"""LLEnvs adapter for the classic API of Verifiers (0.3.1). Importing it does not import the upstream."""

from llenvs_verifiers.adapter import ADAPTER

__all__ = ["ADAPTER"]
