"""Completions of token ids, streamed: what comes back, put together token by token."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.errors import UnknownOption
from llenvs.inference.errors import BadRequest, ProviderFailed
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs_llamacpp.client import NAME, EngineClient

SEEDS = 2**32 - 1
"""Seeds are taken modulo this; the engine reads the number itself as "draw one"."""
# the order of transformers and vLLM (temperature before the truncations), so that the same parameters mean the
# same distribution; llama.cpp's own order has temperature last
SAMPLERS = ("penalties", "dry", "temperature", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc")
EXTRA = (
    "adaptive_decay",
    "adaptive_target",
    "cache_prompt",
    "dry_allowed_length",
    "dry_base",
    "dry_multiplier",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_exponent",
    "dynatemp_range",
    "id_slot",
    "ignore_eos",
    "logit_bias",
    "min_keep",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "repeat_last_n",
    "repeat_penalty",
    "samplers",
    "t_max_predict_ms",
    "top_n_sigma",
    "typical_p",
    "xtc_probability",
    "xtc_threshold",
)
"""Parameters of llama.cpp's ``/completion`` that `SamplingParams.extra` may hold. The server ignores what it does
not know, so the rest is refused here."""


@dataclass(slots=True)
class Sample:
    """One sampled completion.

    `token_ids` and `probabilities` are by position; the server leaves out tokens that end inside a character.
    `last` is the closing chunk.
    """

    text: str = ""
    token_ids: dict[int, int] = field(default_factory=dict)
    probabilities: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    last: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def length(self) -> int:
        """Tokens that were generated."""
        return int(self.last["tokens_predicted"])

    @property
    def complete(self) -> bool:
        """Whether all token ids are known."""
        return len(self.token_ids) == self.length


def completion_body(request: GenerationRequest, sampling: SamplingParams, prompt: Sequence[int]) -> dict[str, Any]:
    """The request to ``/completion`` for one sample, with every parameter that has a default of the server's own.

    Raises:
        BadRequest, UnknownOption: what cannot be asked for together, or is not known in ``extra``.
    """
    for key in sampling.extra:
        if key not in EXTRA:
            raise UnknownOption(key, EXTRA, "sampling.extra of backend llamacpp")
    if request.grammar is not None and request.json_schema is not None:
        raise BadRequest(NAME, "a request has either a grammar or a json_schema, not both")
    body: dict[str, Any] = {
        "prompt": list(prompt),
        "n_predict": -1 if sampling.max_tokens is None else sampling.max_tokens,
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "top_k": 0 if sampling.top_k is None else sampling.top_k,
        "min_p": 0.0 if sampling.min_p is None else sampling.min_p,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
        "samplers": list(SAMPLERS),
        "stop": list(sampling.stop),
        "return_tokens": True,
        **sampling.extra,
    }
    if sampling.logprobs is not None:
        body["n_probs"] = max(1, sampling.logprobs)
    if request.grammar is not None:
        if not request.grammar.strip():
            raise BadRequest(NAME, "the grammar is empty, which llama.cpp takes for none")
        body["grammar"] = request.grammar
    if request.json_schema is not None:
        body["json_schema"] = dict(request.json_schema)
    return body


async def stream_samples(client: EngineClient, body: Mapping[str, Any], n: int) -> list[Sample]:
    """`n` samples of one request, in the order of their seeds."""
    started = time.perf_counter()
    samples = [Sample() for _ in range(n)]
    texts: list[list[str]] = [[] for _ in range(n)]
    async with aclosing(client.stream("/completion", {**body, "n": n})) as chunks:
        async for chunk in chunks:
            index = chunk["index"]
            sample = samples[index]
            texts[index].append(chunk["content"])
            first = chunk["tokens_predicted"] - len(chunk["tokens"])
            for offset, token in enumerate(chunk["tokens"]):
                sample.token_ids[first + offset] = token
            for offset, entry in enumerate(chunk.get("completion_probabilities", ())):
                sample.probabilities[first + offset] = entry
            if chunk["stop"]:
                sample.last = chunk
                sample.seconds = time.perf_counter() - started
    for sample, parts in zip(samples, texts, strict=True):
        if not sample.last:
            raise ProviderFailed(NAME, "the stream ended before the generation did")
        sample.text = "".join(parts)
    return samples


async def repeat_sample(client: EngineClient, body: Mapping[str, Any], sample: Sample, seed: int) -> Sample:
    """`sample` with all its token ids, by sampling once more with its seed, not streamed.

    Only a whole answer holds the ids of tokens that end inside a character. Such a request cannot be cancelled,
    so it is bounded by the length that is known by now. Should rounding lead the repetition elsewhere, it is
    the sample.
    """
    again = await client.post("/completion", {**body, "n": 1, "seed": seed, "n_predict": sample.length})
    ids = dict(enumerate(again["tokens"]))
    if len(ids) == sample.length and all(ids[position] == token for position, token in sample.token_ids.items()):
        return Sample(sample.text, ids, sample.probabilities, sample.last, sample.seconds)
    probabilities: dict[int, Mapping[str, Any]] = {}
    position = 0
    for entry in again.get("completion_probabilities", ()):
        while position < len(ids) and ids[position] != entry["id"]:
            position += 1
        if position < len(ids):
            probabilities[position] = entry
            position += 1
    last = {**again, "tokens_predicted": len(ids)}
    return Sample(again["content"], ids, probabilities, last, sample.seconds)
