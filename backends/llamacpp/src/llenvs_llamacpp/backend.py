"""The backend for llama.cpp, embedded in this process."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.inference.errors import UnsupportedFeature
from llenvs.inference.local.chat_template import RenderedPrompt
from llenvs.inference.local.engine_backend import LocalEngineBackend
from llenvs.inference.local.fingerprint import fingerprint
from llenvs.inference.local.model_file import DEFAULT_MODEL, named_model
from llenvs.inference.local.versions import versions_of
from llenvs.inference.loop import PerLoop, run_sync
from llenvs.inference.option_checks import check_counts, check_mappings, check_texts, check_timeout
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import ToolCallParser, make_parser
from llenvs_llamacpp.client import NAME, EngineClient
from llenvs_llamacpp.completion import SEEDS, Sample, completion_body, repeat_sample, stream_samples
from llenvs_llamacpp.model_file import locate_model
from llenvs_llamacpp.prompt import render
from llenvs_llamacpp.schema import try_schema
from llenvs_llamacpp.server import EmbeddedServer, ServerSettings
from llenvs_llamacpp.split_characters import Vocabulary, distribution_of, read_vocabulary
from llenvs_llamacpp.tools import (
    chat_template_named,
    for_template,
    knows_tools,
    needs_tools,
    read_calls,
    with_forced_call,
)

if TYPE_CHECKING:
    from llenvs.inference.budget import Budget
    from llenvs.inference.cache import GenerationCache

_FINISH = {"eos": FinishReason.STOP, "word": FinishReason.STOP, "limit": FinishReason.LENGTH}


class LlamaCppBackend(LocalEngineBackend[EmbeddedServer]):
    """A GGUF model run by llama.cpp inside this process.

    The engine is loaded at the first request (or by `check`). `slots` requests generate at once, the rest wait in
    order; cancelling a request frees its slot. A generation has the exact ids of its prompt and completion, and
    logprobs of the model's raw distribution (before temperature, truncation and grammar).

    What a request leaves open is taken from `sampling`, and what that leaves open too is the model's own
    distribution: temperature 1, no top_k, top_p or min_p, no penalties, generation until the model ends its
    turn or the context is full. (llama.cpp's own defaults truncate; they are never used.) The order is that of
    transformers and vLLM: penalties, temperature, top_k, top_p, min_p. The same seed gives the same text with
    ``slots=1`` (requests that are computed together are rounded together, and rarely another token follows);
    without one a seed is drawn, and noted in ``metadata["seed"]``. Penalties count the last 64 tokens, the
    prompt's included (``extra={"repeat_last_n": ...}``).

    Tools are shown to the model by its chat template where that knows tools, else in the system message. A tool
    choice that demands a call ("required", or a name) is kept by a grammar. A call that cannot be read comes back
    with its `problem`.

    A process made by fork starts an engine of its own; it must end as the workers of multiprocessing do, by
    ``os._exit``, since the parent's engine would be waited for.

    Args:
        model: path of a GGUF file. None: the file named by the environment variable LLENVS_MODEL, else the small
            default model SmolLM2-135M-Instruct, which is fetched once (see `llenvs.inference.local.model_file`).
        n_ctx: tokens of context of each request, prompt and answer together; None: what the model was trained
            with, at most 4096.
        slots: requests that generate at once, >= 1. Each slot holds memory for `n_ctx` tokens.
        threads: that compute; None: the cores of this machine, at most 8 (see `llenvs_llamacpp.threads`).
        chat_template: Jinja text that replaces the model's own chat template, or "chatml_tools", the one of this
            package: ChatML with tools in the Hermes form.
        tool_parser: the form in which the model calls tools, by name ("hermes", "llama3_json", "llama3_pythonic",
            "mistral") or made.
        max_tool_calls: at most so many calls in one answer, when they are demanded.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
        parse_special: whether the text of a control token inside a message's content becomes that token, as it
            does in llama.cpp's own chat API. By default it stays text, so that content cannot end its turn.
        max_concurrency: requests under way at once from one event loop, some of them rendered and waiting for a
            slot; None: twice the slots.
        timeout: seconds to wait for the next piece of an answer, a slot included; None: for ever.
        verbosity: of llama.cpp's log on stderr, 0 (silent) to 5.
        engine: further parameters of the engine by name, attributes of ``xllamacpp.CommonParams``.
        budget: requests and tokens per minute (`Budget`, or its fields).
        cache: a folder in which answers are kept (or a `GenerationCache`).

    Errors on use: `ModelNotFound` (no such file, no GGUF), `EngineUnavailable` (library missing, model does not
    load), `ContextOverflow`, `BadRequest` (a grammar or schema that cannot be used).
    """

    name: ClassVar[str] = NAME
    capabilities = Capabilities(
        logprobs=True,
        max_top_logprobs=1000,
        token_ids=True,
        prefix=True,
        tools=True,
        seed=True,
        native_n=True,
        top_k=True,
        min_p=True,
        penalties=True,
        grammar=True,
        json_schema=True,
        hints={"images": "the engine would need the model's projector file (mmproj), which it does not load"},
    )

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        n_ctx: int | None = None,
        slots: int = 4,
        threads: int | None = None,
        chat_template: str | None = None,
        tool_parser: str | ToolCallParser = "hermes",
        max_tool_calls: int = 1,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        parse_special: bool = False,
        max_concurrency: int | None = None,
        timeout: float | None = None,
        verbosity: int = 0,
        engine: Mapping[str, Any] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        cache: GenerationCache | str | os.PathLike[str] | None = None,
    ) -> None:
        check_counts(n_ctx=n_ctx, slots=slots, threads=threads)
        check_counts(max_concurrency=max_concurrency, max_tool_calls=max_tool_calls)
        check_timeout(timeout)
        check_texts(chat_template=chat_template)
        check_mappings(engine=engine)
        named = named_model(model)
        concurrency = max_concurrency or 2 * slots
        super().__init__(named.stem if named else Path(DEFAULT_MODEL.filename).stem, max_concurrency=concurrency)
        self._named = model
        self._sampling = SamplingParams.of(sampling)
        self._parser = make_parser(tool_parser)
        self._max_tool_calls = max_tool_calls
        self._template_knows_tools: bool | None = None
        self._parse_special = parse_special
        self._timeout = timeout
        self._settings = ServerSettings(
            n_ctx=n_ctx,
            slots=slots,
            threads=threads,
            chat_template=None if chat_template is None else chat_template_named(chat_template),
            http_threads=concurrency + 8,
            verbosity=verbosity,
            engine=dict(engine or {}),
        )
        self._clients: PerLoop[EngineClient] = PerLoop(self._new_client)
        self._turns: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(self.max_concurrency))
        self._tried_schemas: set[str] = set()
        self._vocabulary: Vocabulary | None = None
        self.use(budget=budget, cache=cache)

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            "backend": self.name,
            "model": fingerprint(locate_model(self._named)),
            "n_ctx": self._settings.n_ctx,
            "chat_template": self._settings.chat_template,
            "tool_parser": self._parser.name,
            "max_tool_calls": self._max_tool_calls,
            "parse_special": self._parse_special,
            "engine": {key: str(value) for key, value in self._settings.engine.items()},
            "sampling": self._sampling.model_dump(),
            "versions": versions_of("xllamacpp"),
        }

    # -- the engine ---------------------------------------------------------------------------------------

    @property
    def server(self) -> EmbeddedServer:
        """The running engine, started now if need be (0.3 s for the default model).

        Raises:
            ModelNotFound, EngineUnavailable: it cannot be.
        """
        return self._start()

    @property
    def base_url(self) -> str:
        """Address of the engine's OpenAI-style API, ``http://127.0.0.1:<port>/v1``; starts it. See `api_key`."""
        return f"{self.server.url}/v1"

    @property
    def api_key(self) -> str:
        """The key that requests to `base_url` must carry; starts the engine."""
        return self.server.api_key

    def _start_engine(self) -> EmbeddedServer:
        return EmbeddedServer(locate_model(self._named), self.model, self._settings)

    def _stop_engine(self, engine: EmbeddedServer) -> None:
        # it waits up to 30 s for requests under way: they are ended first; on a loop of its own, since at the
        # interpreter's end no thread for the shared one can be started
        asyncio.run(self._clients.aclose(EngineClient.aclose))
        engine.stop()

    async def _client(self) -> EngineClient:
        await self._started()
        return self._clients.get()

    def _new_client(self) -> EngineClient:
        server = self.server
        return EngineClient(server.url, server.api_key, self._timeout)

    # -- tokens and prompts -------------------------------------------------------------------------------

    async def arender(self, request: GenerationRequest) -> RenderedPrompt:
        """The prompt of `request` as the model reads it, text and ids, prefix included. Generates nothing."""
        self.capabilities.check(request, self.name)
        return await self._render(await self._client(), request)

    def render(self, request: GenerationRequest) -> RenderedPrompt:
        """`arender` for code without a loop."""
        return run_sync(self.arender(request))

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Ids of `text`, control tokens written out in it taken as text, nothing added."""

        async def ask() -> tuple[int, ...]:
            client = await self._client()
            body = {"content": text, "add_special": False, "parse_special": False}
            return tuple((await client.post("/tokenize", body))["tokens"])

        return run_sync(ask())

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`, control tokens written out."""

        async def ask() -> str:
            client = await self._client()
            text: str = (await client.post("/detokenize", {"tokens": list(token_ids)}))["content"]
            return text

        return run_sync(ask())

    async def _render(self, client: EngineClient, request: GenerationRequest) -> RenderedPrompt:
        kept_apart = None if self._parse_special else self.server.control_text
        if not needs_tools(request):
            return await render(client.post, request.messages, request.prefix, kept_apart)
        if self._template_knows_tools is None:
            self._template_knows_tools = await knows_tools(client)
        messages, tools = for_template(
            request, self._parser, known=self._template_knows_tools, control_text=kept_apart
        )
        return await render(client.post, messages, request.prefix, kept_apart, tools)

    # -- generation ---------------------------------------------------------------------------------------

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        if sampling.reasoning_effort is not None:
            raise UnsupportedFeature(self.name, "reasoning_effort")
        constrained = with_forced_call(request, self._parser, self._max_tool_calls)
        seed = sampling.seed
        seed = random.getrandbits(31) if seed is None else seed % SEEDS
        async with self._turns.get():
            client = await self._client()
            prompt = await self._render(client, request)
            body = completion_body(constrained, sampling, prompt.token_ids)
            if request.json_schema is not None:
                await self._try_schema(client, request.json_schema)
            generations: list[Generation] = []
            while len(generations) < n:
                first = (seed + len(generations)) % SEEDS
                count = min(n - len(generations), self._settings.slots)
                samples = await stream_samples(client, {**body, "seed": first}, count)
                for number, sample in enumerate(samples):
                    generation = await self._generation(
                        client,
                        sample,
                        prompt,
                        body,
                        sampling.logprobs,
                        (first + number) % SEEDS,
                        bool(generations),
                    )
                    control_text = self.server.control_text
                    generations.append(await read_calls(client, generation, request, self._parser, control_text))
            return generations

    async def _generation(
        self,
        client: EngineClient,
        sample: Sample,
        prompt: RenderedPrompt,
        body: Mapping[str, Any],
        logprobs_wanted: int | None,
        seed: int,
        prompt_was_counted: bool,
    ) -> Generation:
        if not sample.complete:
            sample = await self._completed(client, sample, body, seed)
        ids = tuple(sample.token_ids[position] for position in range(sample.length))
        logprobs = None
        if logprobs_wanted is not None:
            logprobs = await self._logprobs(client, sample, prompt.token_ids, ids, logprobs_wanted)
        last = sample.last
        metadata: dict[str, Any] = {"seed": seed}
        if last.get("stopping_word"):
            metadata["stop"] = last["stopping_word"]
        if last.get("truncated"):
            metadata["context_full"] = True
        return Generation(
            text=sample.text,
            finish_reason=_FINISH.get(last.get("stop_type", ""), FinishReason.UNKNOWN),
            usage=Usage(
                prompt_tokens=0 if prompt_was_counted else int(last["tokens_evaluated"]),
                completion_tokens=len(ids),
                cached_tokens=0 if prompt_was_counted else int(last.get("timings", {}).get("cache_n", 0)),
            ),
            prompt_token_ids=prompt.token_ids,
            completion_token_ids=ids,
            logprobs=logprobs,
            model=self.model,
            latency=sample.seconds,
            metadata=metadata,
        )

    async def _completed(self, client: EngineClient, sample: Sample, body: Mapping[str, Any], seed: int) -> Sample:
        if self._vocabulary is None:
            self._vocabulary = await read_vocabulary(client, self.server.n_vocab)
        ids = self._vocabulary.left_out(sample)
        if ids is None:
            return await repeat_sample(client, body, sample, seed)
        sample.token_ids = ids
        return sample

    async def _logprobs(
        self, client: EngineClient, sample: Sample, prompt: Sequence[int], ids: Sequence[int], wanted: int
    ) -> tuple[TokenLogprob, ...]:
        entries = []
        for position, token in enumerate(ids):
            entry = sample.probabilities.get(position)
            if entry is None:
                before = [*prompt, *ids[:position]]
                entry = await distribution_of(client, before, token, wanted, self.server.n_vocab)
            entries.append(_logprob(entry, wanted))
        return tuple(entries)

    async def _try_schema(self, client: EngineClient, schema: Mapping[str, Any]) -> None:
        key = json.dumps(schema, sort_keys=True, default=str)
        if key not in self._tried_schemas:
            await try_schema(client, schema)
            self._tried_schemas.add(key)


def _logprob(entry: Mapping[str, Any], wanted: int) -> TokenLogprob:
    top = tuple((_spelled(each), float(each["logprob"])) for each in entry["top_logprobs"][:wanted])
    return TokenLogprob(_spelled(entry), float(entry["logprob"]), int(entry["id"]), top)


def _spelled(entry: Mapping[str, Any]) -> str:
    return bytes(entry["bytes"]).decode("utf-8", "replace")
