"""Sampling parameters in vLLM's form."""

from __future__ import annotations

from typing import Any

from llenvs.core.errors import UnknownOption
from llenvs.inference.errors import BadRequest
from llenvs.inference.sampling import SamplingParams
from llenvs_vllm.engine import NAME

SEEDS = 2**63
"""Seeds are taken modulo this, the range that vLLM takes."""


def sampling_to_vllm(
    sampling: SamplingParams, *, n: int, grammar: str | None, json_schema: Any, max_tokens: int
) -> Any:
    """A ``vllm.SamplingParams``. What is None means the model's own distribution.

    Raises:
        UnknownOption: something in ``extra`` that vLLM does not know or that the request decides.
        BadRequest: a grammar and a schema together, or what vLLM refuses.
    """
    import vllm
    from vllm.exceptions import VLLMError
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    if grammar is not None and json_schema is not None:
        raise BadRequest(NAME, "a request has either a grammar or a json_schema, not both")
    structured: dict[str, Any] = {}
    if grammar is not None:
        structured = {"grammar": grammar}
    elif json_schema is not None:
        structured = {"json": json_schema}
    ours: dict[str, Any] = {
        "n": n,
        "max_tokens": max_tokens,
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "top_k": sampling.top_k or 0,
        "min_p": sampling.min_p or 0.0,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
        "seed": None if sampling.seed is None else sampling.seed % SEEDS,
        "stop": list(sampling.stop),
        "logprobs": sampling.logprobs,
        "output_kind": RequestOutputKind.FINAL_ONLY,
        "detokenize": bool(sampling.stop or sampling.extra.get("bad_words")),  # texts are made from the ids here
    }
    known = [name for name in vllm.SamplingParams.__struct_fields__ if name not in ours and name[0] != "_"]
    for key in sampling.extra:
        if key not in known:
            raise UnknownOption(key, known, f"sampling.extra of backend {NAME}")
    try:
        if structured:
            ours["structured_outputs"] = StructuredOutputsParams(**structured)
        return vllm.SamplingParams(**ours, **sampling.extra)
    except (VLLMError, ValueError, TypeError) as error:
        raise BadRequest(NAME, str(error)) from error
