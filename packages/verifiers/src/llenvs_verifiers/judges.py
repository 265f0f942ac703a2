"""Another model behind the upstream's judge rubrics: any backend of ours."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import verifiers.legacy as vf

from llenvs.core.errors import InvalidOption
from llenvs.core.message import ChatMessage
from llenvs.inference import SamplingParams
from llenvs.inference.backend import Backend
from llenvs.inference.request import GenerationRequest
from llenvs_verifiers.scoring import rubrics_of

_SAMPLING = {"max_completion_tokens": "max_tokens"}  # the upstream's word: ours


def judge_backend(judge: Any) -> Backend:
    """The backend that the option `judge` names.

    Raises:
        InvalidOption, UnknownBackend, BackendNotInstalled, UnknownOption: what is wrong with it.
    """
    if isinstance(judge, Backend):
        return judge
    if not isinstance(judge, Mapping) or not isinstance(judge.get("backend"), str):
        valid = "a backend, or a mapping such as {backend: openai, model: ...}"
        raise InvalidOption("judge", judge, "must be a backend or name one", valid=valid)
    from llenvs.inference.backends import make_backend

    return make_backend(**{"name" if key == "backend" else str(key): value for key, value in judge.items()})


def use_judge(rubric: Any, backend: Backend) -> None:
    """Let the judge rubrics in `rubric` ask `backend`."""
    for each in rubrics_of(rubric):
        if isinstance(each, vf.JudgeRubric):
            each.judge_client = _Client(backend)
            each.class_objects["judge_client"] = each.judge_client


def has_judge(rubric: Any) -> bool:
    """Whether a rubric asks a model."""
    return any(isinstance(each, vf.JudgeRubric) for each in rubrics_of(rubric))


class _Client:
    """What `JudgeRubric` uses of an `openai.AsyncOpenAI`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    async def _create(self, *, messages: list[Mapping[str, Any]], model: str = "", **sampling: Any) -> Any:
        known = {_SAMPLING.get(name, name): value for name, value in sampling.items()}
        own = {name: known.pop(name) for name in list(known) if name in SamplingParams.model_fields}
        chat = tuple(ChatMessage(str(message["role"]), str(message["content"])) for message in messages)
        request = GenerationRequest(chat, SamplingParams(**own, extra=known))
        said = await self._backend.generate(request)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=said.text))])
