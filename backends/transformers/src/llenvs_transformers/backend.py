"""The backend for Hugging Face transformers."""

from __future__ import annotations

import asyncio
import atexit
import os
import random
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.core.generation import Generation, Usage
from llenvs.inference.backend import Backend
from llenvs.inference.errors import (
    ConnectionFailed,
    ContextOverflow,
    EngineUnavailable,
    ProviderFailed,
    UnsupportedFeature,
)
from llenvs.inference.local.answer import read_answer
from llenvs.inference.local.chat_template import RenderedPrompt
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.local.fingerprint import fingerprint
from llenvs.inference.local.versions import versions_of
from llenvs.inference.loop import run_sync
from llenvs.inference.option_checks import check_mappings, check_texts
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import ToolCallParser, make_parser
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
class _Running:
    loaded: LoadedModel
    chat: ChatTokenizer
    batcher: MicroBatcher


class HuggingFaceBackend(Backend):
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
        for option, value in {
            "n_ctx": n_ctx,
            "max_batch": max_batch,
            "threads": threads,
            "max_concurrency": max_concurrency,
        }.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidOption(option, value, "must be a whole number of at least 1")
        check_texts(chat_template=chat_template, device=device)
        check_mappings(template_options=template_options, model_options=model_options)
        if dtype is not None and dtype not in DTYPES:
            raise InvalidOption("dtype", dtype, "no such type", valid=", ".join(DTYPES))
        if isinstance(linger, bool) or not isinstance(linger, int | float) or not linger >= 0:
            raise InvalidOption("linger", linger, "must be seconds, at least 0")
        super().__init__(model_label(model), max_concurrency=max_concurrency or 4 * max_batch)
        self._named = model
        self._max_batch = max_batch
        self._linger = linger
        self._parser = make_parser(tool_parser)
        self._chat_template = chat_template
        self._template_options = template_options
        self._parse_special = parse_special
        self._sampling = SamplingParams.of(sampling)
        self._settings = ModelSettings(device, dtype, n_ctx, threads, trust_remote_code, dict(model_options or {}))
        self._starting = threading.Lock()
        self._running: _Running | None = None
        self._pid = os.getpid()
        _backends.add(self)

    # -- the engine ---------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Load the model. Raises what a request would."""
        await self._started()

    async def aclose(self) -> None:
        """Free the model; requests under way fail with `ConnectionFailed`. A later request loads it again."""
        await asyncio.to_thread(self._stop)

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`. Finds the model (fetching the default one), and does not load it."""
        source = find_source(self._named)
        path = os.path.join(source.location, source.gguf_file) if source.gguf_file else source.location
        return {
            "backend": self.name,
            "model": [source.location, source.gguf_file],
            "files": fingerprint(path),
            "settings": asdict(self._settings),
            "parser": self._parser.name,
            "template": [self._chat_template, dict(self._template_options or {}), self._parse_special],
            "sampling": self._sampling.model_dump(),
            "versions": versions_of("torch", "transformers", "tokenizers"),
        }

    async def _started(self) -> _Running:
        return self._running if self._running is not None else await asyncio.to_thread(self._start)

    def _start(self) -> _Running:
        if self._pid != os.getpid():
            raise EngineUnavailable(
                self.name,
                "this process was made by fork, in which torch does not work; start it with "
                'multiprocessing.get_context("spawn"), or make the backend there',
            )
        with self._starting:
            if self._running is None:
                loaded = load_model(find_source(self._named), self._settings)
                chat = ChatTokenizer(
                    loaded.tokenizer,
                    self._parser,
                    backend=self.name,
                    chat_template=self._chat_template,
                    template_options=self._template_options,
                    parse_special=self._parse_special,
                )

                def decode_rows(rows: Sequence[Row]) -> None:
                    decode(loaded, rows, lambda: batcher.stopped)

                batcher = MicroBatcher(
                    decode_rows, max_batch=self._max_batch, linger=self._linger, as_error=self._as_error
                )
                self._running = _Running(loaded, chat, batcher)
            return self._running

    def _stop(self) -> None:
        if self._pid != os.getpid():
            return
        with self._starting:
            running, self._running = self._running, None
        if running is not None:
            running.batcher.stop(ConnectionFailed(self.name, "the backend was closed"))

    def _as_error(self, error: Exception) -> ProviderFailed:
        said = " ".join(str(error).split())[:300]
        hint = "; a smaller max_batch or n_ctx needs less" if "memory" in said else ""
        return ProviderFailed(self.name, f"generation failed: {type(error).__name__}: {said}{hint}")

    # -- tokens and prompts -------------------------------------------------------------------------------

    async def arender(self, request: GenerationRequest) -> RenderedPrompt:
        """The prompt of `request` as the model reads it, text and ids, prefix included. Generates nothing."""
        self.capabilities.check(request, self.name)
        running = await self._started()
        return await asyncio.to_thread(running.chat.render, request)

    def render(self, request: GenerationRequest) -> RenderedPrompt:
        """`arender` for code without a loop."""
        return run_sync(self.arender(request))

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Ids of `text`, control tokens written out in it taken as text, nothing added."""
        return tuple(run_sync(self._started()).chat.encode(text))

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`, control tokens written out."""
        return run_sync(self._started()).chat.decode((), token_ids, special=True)

    # -- generation ---------------------------------------------------------------------------------------

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        self.capabilities.check(replace(request, sampling=sampling), self.name)
        for key in sampling.extra:
            if key not in EXTRA:
                raise UnknownOption(key, EXTRA, f"sampling.extra of backend {self.name}")
        if forces_a_call(request.tool_choice) and request.tools:
            raise UnsupportedFeature(
                self.name,
                f"tool_choice {request.tool_choice!r}",
                "transformers takes no grammar, which forces a call",
            )
        running = await self._started()
        prompt = await asyncio.to_thread(running.chat.render, request)
        room = running.loaded.n_ctx - len(prompt.token_ids)
        if room < 1:
            raise ContextOverflow(
                self.name,
                f"the prompt has {len(prompt.token_ids)} tokens, which leaves no room for an answer in the "
                f"context of {running.loaded.n_ctx}",
            )
        seed = random.getrandbits(31) if sampling.seed is None else sampling.seed
        row = Row(
            prompt=prompt.token_ids,
            sampling=sampling,
            sampler=TokenSampler(sampling, seed, running.loaded.device),
            limit=min(room, sampling.max_tokens or room),
            ends=_ends(running.loaded, sampling.extra),
            chat=running.chat,
        )
        running.batcher.submit(row)
        await asyncio.wrap_future(row.future)
        metadata: dict[str, Any] = {"seed": seed}
        if len(row.ids) == room and not row.ended and row.stop is None:
            metadata["context_full"] = True
        assert row.finish_reason is not None
        return [
            read_answer(
                running.chat,
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


_backends: weakref.WeakSet[HuggingFaceBackend] = weakref.WeakSet()


def _stop_all() -> None:
    # torch must not be at work in a daemon thread while the interpreter goes away
    for backend in list(_backends):
        backend._stop()


atexit.register(_stop_all)
