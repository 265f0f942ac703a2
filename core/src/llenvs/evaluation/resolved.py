"""The resolved configuration of a run, as it stands in ``config.json``: everything that decides what is run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from llenvs.core.environment import Environment
from llenvs.evaluation.record import plain
from llenvs.inference.backend import Backend
from llenvs.inference.prompts import PromptBuilder
from llenvs.inference.sampling import SamplingParams

_SECRET = re.compile(
    r"(^|_)(api_?key|key|token|secret|password|credentials?|authorization|headers?)$", re.IGNORECASE
)
HIDDEN_VALUE = "(hidden)"


def without_secrets(value: Any, name: str = "") -> Any:
    """JSON data of `value`, with what is named like a secret left out."""
    if value is not None and name and _SECRET.search(name):
        return HIDDEN_VALUE
    if isinstance(value, Mapping):
        return {str(k): without_secrets(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(v) for v in value]
    return plain(value)


def resolved_environment(
    environment: Environment[Any], label: str, builder: PromptBuilder, max_steps: int | None
) -> dict[str, Any]:
    """What an environment is and how its tasks are put to the model."""
    spec = asdict(environment.spec)
    spec.pop("description")
    return {
        "label": label,
        "id": environment.spec.id,
        "available_tasks": len(environment),
        "max_steps": max_steps,
        "spec": plain(spec),
        "prompt": resolved_prompt(builder),
    }


def resolved_prompt(builder: PromptBuilder) -> dict[str, Any]:
    """The messages that a task is put into, with its slots standing for themselves."""
    explained = builder.explain()
    return {
        "profile": explained.profile,
        "messages": [{"role": message.role, "content": message.content} for message in explained.messages],
        "assistant_prefix": explained.assistant_prefix,
    }


def resolved_model(
    backend: Backend, sampling: SamplingParams, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The model and how it is sampled."""
    return {
        "backend": backend.name,
        "model": backend.model,
        "options": without_secrets(options or {}),
        "sampling": plain(sampling.model_dump(mode="json", exclude_defaults=True)),
    }


def resolved_amount(task_indices: Sequence[int], repeats: int) -> dict[str, Any]:
    """How much of an environment is run."""
    return {
        "num_tasks": len(task_indices),
        "task_indices": str(task_indices) if isinstance(task_indices, range) else list(task_indices),
        "repeats": repeats,
    }
