"""Where rows come from: lists, local files and directories, the hub."""

from llenvs_huggingface.sources.errors import DataUnavailable
from llenvs_huggingface.sources.rows import Origin, Rows, selected

__all__ = ["DataUnavailable", "Origin", "Rows", "selected"]
