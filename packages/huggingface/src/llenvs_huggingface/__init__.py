"""LLEnvs adapter for data sets of the Hugging Face hub and local ones. Importing it does not import `datasets`."""

from llenvs_huggingface.adapter import ADAPTER

__all__ = ["ADAPTER"]
