"""LLEnvs adapter for tau2-bench. Importing it does not import the upstream."""

from llenvs_tau.adapter import ADAPTER

__all__ = ["ADAPTER"]
