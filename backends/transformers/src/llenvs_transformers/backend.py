"""The backend for Hugging Face transformers."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.generation import Generation, Usage
from llenvs.inference.errors import ConnectionFailed, ProviderFailed, UnsupportedFeature
from llenvs.inference.local.answer import read_answer
from llenvs.inference.local.chat_backend import ChatEngine, ChatEngineBackend
from llenvs.inference.local.fingerprint import fingerprint
from llenvs.inference.option_checks import check_counts, check_mappings, check_texts
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import ToolCallParser
from llenvs.inference.tool_calls.choice import forces_a_call
from llenvs_transformers.batcher import MicroBatcher
from llenvs_transformers.decoding import decode
from llenvs_transformers.model import DTYPES, LoadedModel, ModelSettings, load_model
from llenvs_transformers.row import Row
from llenvs_transformers.source import NAME, find_source, model_label
from llenvs_transformers.token_sampler import TokenSampler

EXTRA = ("ignore_eos", "stop_token_ids")
"""What `SamplingParams.extra` may hold: whether to go on after the end of a turn; further ids that end one."""


@dataclass(frozen=True)
class _Engine(ChatEngine):
    loaded: LoadedModel
    batcher: MicroBatcher


class HuggingFaceBackend(ChatEngineBackend[_Engine]):
    """A causal language model run by transformers inside this process.

    The model is loaded at the first request (or by `check`). Requests that wait at the same time are decoded as
    one batch, padded on the left; a request gets its answer when its own row is done, and cancelling it ends the
    row. A generation has the exact ids of its prompt and completion, and logprobs of the model's raw distribution
    (before penalties, temperature and truncation).

    What a request leaves open is taken from `sampling`, and what that leaves open too is the model's own
    distribution: temperature 1, no truncation, no penalties, generation until the model ends its turn or the
    context is full. (What a checkpoint's generation_config recommends is not used.) The same seed gives the same
    text in any batch, on one kind of device and in float32; in 16 bits the size of the batch moves logits by
    rounding. Without a seed one is drawn, and noted in ``metadata["seed"]``. Penalties count what was generated.

    Args:
        model: a folder (``save_pretrained``), a GGUF file, or a name on the Hugging Face hub. None: the file named
            by the environment variable LLENVS_MODEL, else the small default model SmolLM2-135M-Instruct.
        device: where torch is to compute: "cpu", "cuda", "cuda:1", "mps". None: a GPU when there is one.
        dtype: "float32", "bfloat16", "float16", or "auto" for what the checkpoint has. None: float32 on a CPU,
            else "auto".
        n_ctx: tokens of context of each request, prompt and answer together; None: what the model was trained
            with.
        max_batch: rows in one batch, >= 1.
        linger: seconds to wait for further requests as long as they keep coming, before a batch that has room
            begins.
        threads: that torch computes with, in the whole process; None: as torch is set.
        tool_parser: the form in which the model calls tools, by name ("hermes", "llama3_json", "llama3_pythonic",
            "mistral") or made.
        chat_template: Jinja text that replaces the model's own chat template.
        template_options: further variables of the template, e.g. ``{"enable_thinking": False}``.
        parse_special: whether the text of a control token inside a message's content becomes that token. By
            default it stays text, so that content cannot end its turn.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
        max_concurrency: of `chat_batch` and evaluations; None: four times `max_batch`.
        trust_remote_code: whether code that comes with the model may run.
        model_options: further arguments of ``AutoModelForCausalLM.from_pretrained``, e.g. ``device_map``.

    Errors on use: `ModelNotFound`, `AuthenticationFailed` (a gated model), `EngineUnavailable` (torch missing,
    model does not load), `ContextOverflow`, `BadRequest` (the chat template refuses the messages),
    `ProviderFailed` (torch fails, out of memory for example).
    """

    name: ClassVar[str] = NAME
    capabilities = Capabilities(
        logprobs=True,
        max_top_logprobs=1000,
        token_ids=True,
        prefix=True,
        tools=True,
        seed=True,
        top_k=True,
        min_p=True,
        penalties=True,
    )
    packages = ("torch", "transformers", "tokenizers")
    fork_problem = (
        "this process was made by fork, in which torch does not work; start it with "
        'multiprocessing.get_context("spawn"), or make the backend there'
    )

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        n_ctx: int | None = None,
        max_batch: int = 16,
        linger: float = 0.005,
        threads: int | None = None,
        tool_parser: str | ToolCallParser = "hermes",
        chat_template: str | None = None,
        template_options: Mapping[str, Any] | None = None,
        parse_special: bool = False,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        max_concurrency: int | None = None,
        trust_remote_code: bool = False,
        model_options: Mapping[str, Any] | None = None,
    ) -> None:
        check_counts(n_ctx=n_ctx, max_batch=max_batch, threads=threads, max_concurrency=max_concurrency)
        check_texts(device=device)
        check_mappings(model_options=model_options)
        if dtype is not None and dtype not in DTYPES:
            raise InvalidOption("dtype", dtype, "no such type", valid=", ".join(DTYPES))
        if isinstance(linger, bool) or not isinstance(linger, int | float) or not linger >= 0:
            raise InvalidOption("linger", linger, "must be seconds, at least 0")
        super().__init__(
            model_label(model),
            max_concurrency=max_concurrency or 4 * max_batch,
            tool_parser=tool_parser,
            chat_template=chat_template,
            template_options=template_options,
            parse_special=parse_special,
            sampling=sampling,
        )
        self._named = model
        self._max_batch = max_batch
        self._linger = linger
        self._settings = ModelSettings(device, dtype, n_ctx, threads, trust_remote_code, dict(model_options or {}))

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`. Finds the model (fetching the default one), and does not load it."""
        source = find_source(self._named)
        path = os.path.join(source.location, source.gguf_file) if source.gguf_file else source.location
        return {
            **super().identity(),
            "model": [source.location, source.gguf_file],
            "files": fingerprint(path),
            "settings": asdict(self._settings),
        }

    # -- the engine ---------------------------------------------------------------------------------------

    def _start_engine(self) -> _Engine:
        loaded = load_model(find_source(self._named), self._settings)

        def decode_rows(rows: Sequence[Row]) -> None:
            decode(loaded, rows, lambda: batcher.stopped)

        batcher = MicroBatcher(
            decode_rows, max_batch=self._max_batch, linger=self._linger, as_error=self._as_error
        )
        return _Engine(self._chat_tokenizer(loaded.tokenizer), loaded.n_ctx, loaded, batcher)

    def _stop_engine(self, engine: _Engine) -> None:
        engine.batcher.stop(ConnectionFailed(self.name, "the backend was closed"))

    def _as_error(self, error: Exception) -> ProviderFailed:
        said = " ".join(str(error).split())[:300]
        hint = "; a smaller max_batch or n_ctx needs less" if "memory" in said else ""
        return ProviderFailed(self.name, f"generation failed: {type(error).__name__}: {said}{hint}")

    # -- generation ---------------------------------------------------------------------------------------

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        for key in sampling.extra:
            if key not in EXTRA:
                raise UnknownOption(key, EXTRA, f"sampling.extra of backend {self.name}")
        if forces_a_call(request.tool_choice) and request.tools:
            raise UnsupportedFeature(
                self.name,
                f"tool_choice {request.tool_choice!r}",
                "transformers takes no grammar, which forces a call",
            )
        engine = await self._ready(replace(request, sampling=sampling))
        prompt, room = await self._prompt(engine, request)
        seed = random.getrandbits(31) if sampling.seed is None else sampling.seed
        row = Row(
            prompt=prompt.token_ids,
            sampling=sampling,
            sampler=TokenSampler(sampling, seed, engine.loaded.device),
            limit=min(room, sampling.max_tokens or room),
            ends=_ends(engine.loaded, sampling.extra),
            chat=engine.chat,
        )
        engine.batcher.submit(row)
        await asyncio.wrap_future(row.future)
        metadata: dict[str, Any] = {"seed": seed}
        if len(row.ids) == room and not row.ended and row.stop is None:
            metadata["context_full"] = True
        assert row.finish_reason is not None
        return [
            read_answer(
                engine.chat,
                request,
                prompt,
                row.ids,
                ended=row.ended,
                stop=row.stop,
                finish_reason=row.finish_reason,
                logprobs=tuple(row.logprobs) if sampling.logprobs is not None else None,
                usage=Usage(prompt_tokens=len(prompt.token_ids), completion_tokens=len(row.ids)),
                model=self.model,
                latency=row.seconds,
                metadata=metadata,
            )
        ]


def _ends(loaded: LoadedModel, extra: Mapping[str, Any]) -> frozenset[int]:
    further = extra.get("stop_token_ids", ())
    if not isinstance(further, Sequence) or not all(isinstance(each, int) for each in further):
        raise InvalidOption("sampling.extra.stop_token_ids", further, "must be a list of token ids")
    return frozenset(further) if extra.get("ignore_eos") else loaded.ends | frozenset(further)
