"""A loaded model with its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.inference.errors import AuthenticationFailed, BackendError, EngineUnavailable, ModelNotFound
from llenvs_transformers.source import NAME, ModelSource

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class ModelSettings:
    """How to load a model; the meaning of each is in `HuggingFaceBackend`."""

    device: str | None = None
    dtype: str | None = None
    n_ctx: int | None = None
    threads: int | None = None
    trust_remote_code: bool = False
    model_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready.

    Attributes:
        model: a ``transformers.PreTrainedModel`` in evaluation mode.
        tokenizer: its tokenizer.
        device: where token ids go in.
        n_ctx: tokens of prompt and answer together, at most.
        ends: ids that end a turn.
        pad: id that fills up shorter prompts.
    """

    model: Any
    tokenizer: Any
    device: Any
    n_ctx: int
    ends: frozenset[int]
    pad: int


def load_model(source: ModelSource, settings: ModelSettings) -> LoadedModel:
    """Load `source`.

    Raises:
        EngineUnavailable: torch or transformers is missing, or the model cannot be loaded so.
        ModelNotFound, AuthenticationFailed: what the hub says.
    """
    torch, transformers = _import_engine()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = settings.device or _best_device(torch)
    dtype = settings.dtype or ("float32" if str(device) == "cpu" else "auto")
    options: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
    if source.gguf_file is not None:
        options["gguf_file"] = source.gguf_file
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise InvalidOption(
            "device", device, "torch knows no such device", valid="cpu, cuda, cuda:0, mps"
        ) from error
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.location, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source.location,
            dtype=dtype if dtype == "auto" else getattr(torch, dtype),
            **options,
            **settings.model_options,
        )
        if "device_map" not in settings.model_options:
            model.to(place)
    except Exception as error:
        raise _failure(error, source) from error
    model.eval()
    given = model.generation_config
    ends = _ids(given.eos_token_id) | _ids(tokenizer.eos_token_id)
    pad = next(iter(sorted(_ids(tokenizer.pad_token_id) | _ids(given.pad_token_id) | ends)), 0)
    # whatever a checkpoint recommends for sampling is the request's to say
    model.generation_config = transformers.GenerationConfig(pad_token_id=pad)
    return LoadedModel(model, tokenizer, model.device, _context(model, tokenizer, settings), ends, pad)


def _import_engine() -> tuple[Any, Any]:
    try:
        import torch
    except ImportError as error:
        raise EngineUnavailable(
            NAME,
            f"PyTorch cannot be loaded ({error}); install the build for your hardware, for example: "
            "pip install torch, or with the backend: pip install 'llenvs[transformers]'",
        ) from error
    try:
        import transformers
    except ImportError as error:
        raise EngineUnavailable(
            NAME, f"transformers cannot be loaded ({error}); run: pip install 'llenvs[transformers]'"
        ) from error
    return torch, transformers


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _context(model: Any, tokenizer: Any, settings: ModelSettings) -> int:
    config = model.config.get_text_config()
    trained = getattr(config, "max_position_embeddings", None) or min(tokenizer.model_max_length, 2**20)
    if settings.n_ctx is not None and settings.n_ctx > trained:
        raise InvalidOption("n_ctx", settings.n_ctx, f"the model was trained with {trained} tokens of context")
    return int(settings.n_ctx or trained)


def _ids(value: Any) -> frozenset[int]:
    if value is None:
        return frozenset()
    return frozenset(map(int, value)) if isinstance(value, list | tuple) else frozenset({int(value)})


def _failure(error: Exception, source: ModelSource) -> BackendError:
    from huggingface_hub import errors as hub

    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    said = " ".join(str(error).split())[:400]
    if any(isinstance(each, hub.GatedRepoError) for each in causes):
        return AuthenticationFailed(NAME, f"{source.location}: {said}")
    absent = (hub.RepositoryNotFoundError, hub.OfflineModeIsEnabled, hub.HFValidationError)
    if any(isinstance(each, absent) for each in causes):
        return ModelNotFound(NAME, f"{source.location}: {said}")
    if isinstance(error, OSError) and source.gguf_file is None:
        return ModelNotFound(NAME, f"{source.location}: {said}")
    return EngineUnavailable(
        NAME, f"{source.gguf_file or source.location} could not be loaded: {type(error).__name__}: {said}"
    )
