"""Model profiles: what a family of models accepts, found from the model's name.

A profile is a statement about the model (its chat template or its API), not about a backend. What a backend
can do is in the backend's own capabilities; both have to agree before something is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.catalog import Catalog, UnknownProfile


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What one family of models wants.

    Attributes:
        name: unique among the registered profiles.
        patterns: regular expressions, searched without regard to case in each part of a model name that is
            separated by ``/``. They match at the start of a word only.
        doc: one line for people.
        system_role: False where the chat template or API refuses a system message, drops it, or the maker
            advises against one; the system text then stands at the start of the first user message.
        assistant_prefix: whether a reply can be made to begin with a given text.
        accepts_sampling: False where the API refuses temperature, top_p and top_k.
        reasoning: the model reasons before it answers, so it needs a larger token budget.
        thinking_tags: the texts around visible reasoning, None when it is hidden or there is none.
        sampling: the maker's recommended values, by the names of `SamplingParams` (temperature, top_p, top_k,
            min_p). A recommendation, never applied on its own; empty when there is none.
        source: where these facts come from.
    """

    name: str
    patterns: tuple[str, ...]
    doc: str = ""
    system_role: bool = True
    assistant_prefix: bool = True
    accepts_sampling: bool = True
    reasoning: bool = False
    thinking_tags: tuple[str, str] | None = None
    sampling: Mapping[str, float] = field(default_factory=dict, hash=False)
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(self.patterns))
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise InvalidOption(
                    f"profile {self.name}", pattern, f"is no regular expression ({error})"
                ) from None

    def matches(self, part: str) -> bool:
        """Whether `part`, one ``/``-separated part of a model name, belongs to this family."""
        # `models--Qwen--Qwen3-8B` and `us.anthropic.claude-...` are split by the word-start condition.
        return any(re.search(rf"(?<![a-z0-9])(?:{p})", part, re.IGNORECASE) for p in self.patterns)


profiles: Catalog[ModelProfile] = Catalog(UnknownProfile, "`llenvs prompts` lists all")

GENERIC = ModelProfile(
    "generic",
    (),
    "A model that no other profile knows: a system role, an assistant prefix, no thinking tags.",
)


def register_profile(profile: ModelProfile, *, replace: bool = False) -> ModelProfile:
    """Make `profile` known; those registered by users are tried before the built-in ones, the newest first.

    Raises:
        InvalidOption: the name is taken and `replace` is not set.
    """
    return profiles.add(profile, replace=replace)


def get_profile(name: str) -> ModelProfile:
    """The registered profile called `name`; UnknownProfile with the nearest names when there is none."""
    return profiles.get(name)


def list_profiles() -> tuple[ModelProfile, ...]:
    """All registered profiles."""
    return tuple(profiles)


def detect_profile(model_name: str) -> ModelProfile:
    """The profile of the model called `model_name`; `GENERIC` when no pattern matches.

    Understands hub names (``Qwen/Qwen3-8B``), API names (``gpt-4o``, ``ft:gpt-4o:org::id``), router names
    (``openrouter/anthropic/claude-...``), Ollama names (``gemma2:9b``), file names (``....Q4_1.gguf``) and
    paths of checkpoints. The last part of a path counts most, so that ``Qwen3-8B-sft/checkpoint-500`` is found
    by its folder.
    """
    parts = [part for part in str(model_name).replace("\\", "/").split("/") if part]
    for part in reversed(parts):
        for profile in reversed(_own_profiles()):
            if profile.matches(part):
                return profile
        for profile in _BUILT_IN:
            if profiles.get(profile.name).matches(part):
                return profiles.get(profile.name)
    return GENERIC


def _own_profiles() -> list[ModelProfile]:
    built_in = {profile.name for profile in (*_BUILT_IN, GENERIC)}
    return [profile for profile in profiles if profile.name not in built_in]


_THINK = ("<think>", "</think>")
_CARD = "model card"

# The order matters: the first match wins, so the special stands before the general.
_BUILT_IN: tuple[ModelProfile, ...] = (
    # Distilled models carry the name of the base model as well; DeepSeek's stands first for that reason.
    ModelProfile(
        "deepseek-r1",
        (r"deepseek[-_.]?r1(?![-_.]?0528)", r"deepseek[-_.]reasoner", r"open[-_]?thinker"),
        "DeepSeek-R1 and its distilled models: reasons in <think>; instructions go into the user message.",
        system_role=False,
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95},
        source="model card of deepseek-ai/DeepSeek-R1, usage recommendations",
    ),
    ModelProfile(
        "deepseek-r1-0528",
        (r"deepseek[-_.]?r1[-_.]?0528",),
        "The revision of DeepSeek-R1 that takes a system prompt.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95},
        source="model card of deepseek-ai/DeepSeek-R1-0528",
    ),
    ModelProfile("deepseek", (r"deepseek",), "DeepSeek chat, coder and V models.", source=_CARD),
    # OpenAI. o1, o3, o4 are matched as whole names, since other models end in "-o1".
    ModelProfile(
        "openai-o1-preview",
        (r"o1-(?:mini|preview)(?![a-z])",),
        "o1-mini and o1-preview: no system message, no sampling parameters.",
        system_role=False,
        assistant_prefix=False,
        accepts_sampling=False,
        reasoning=True,
        source="OpenAI API reference, reasoning models",
    ),
    ModelProfile(
        "openai-o",
        (r"(?<![-_])o[134](?:-(?:mini|pro|deep-research))?(?:-\d{4}-\d{2}-\d{2})?(?=$|:)",),
        "OpenAI o-series: hidden reasoning, no sampling parameters.",
        assistant_prefix=False,
        accepts_sampling=False,
        reasoning=True,
        source="OpenAI API reference, reasoning models",
    ),
    ModelProfile(
        "gpt-chat",
        (r"gpt-[345](?:\.\d+)?[a-z]?-chat", r"chatgpt-", r"gpt-3\.5", r"gpt-4"),
        "OpenAI chat models without reasoning: GPT-3.5, GPT-4, GPT-4o, GPT-4.1 and the chat variants of GPT-5.",
        assistant_prefix=False,
        source="OpenAI API reference",
    ),
    ModelProfile(
        "gpt-oss",
        (r"gpt[-_]oss",),
        "OpenAI's open-weight models: reasons in a channel of its own (harmony format), not in tags.",
        reasoning=True,
        sampling={"temperature": 1.0, "top_p": 1.0},
        source="repository openai/gpt-oss, recommended sampling parameters",
    ),
    ModelProfile(
        "gpt-5",
        (r"gpt-[5-9]", r"codex-mini"),
        "GPT-5 and later: hidden reasoning; sampling parameters are refused while it reasons.",
        assistant_prefix=False,
        accepts_sampling=False,
        reasoning=True,
        source="OpenAI API reference, GPT-5",
    ),
    # Anthropic. Version and tier changed places with Claude 4.
    ModelProfile(
        "claude-adaptive",
        (
            r"claude-(?:opus-4[-.][789]|4[.-][789]-opus)(?!\d)",
            r"claude-(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|preview)(?!\d)",
        ),
        "Claude Opus 4.7 and Claude 5, and later: no sampling parameters, no assistant prefix.",
        assistant_prefix=False,
        accepts_sampling=False,
        reasoning=True,
        source="Anthropic migration guide for Claude Opus 4.7",
    ),
    ModelProfile(
        "claude-4.6",
        (r"claude-(?:opus|sonnet|haiku)-4[-.]6(?!\d)", r"claude-4[.-]6-(?:opus|sonnet|haiku)"),
        "Claude 4.6: no assistant prefix.",
        assistant_prefix=False,
        source="Anthropic, what's new in Claude 4.6",
    ),
    ModelProfile(
        "claude", (r"claude",), "Claude up to 4.5: takes an assistant prefix.", source="Anthropic API reference"
    ),
    ModelProfile(
        "gemini-thinking",
        (r"gemini-(?:2\.5|[3-9])", r"gemini-.*thinking"),
        "Gemini 2.5 and later: hidden reasoning.",
        assistant_prefix=False,
        reasoning=True,
        source="Gemini API reference, thinking",
    ),
    ModelProfile(
        "gemini", (r"gemini",), "Gemini 1 and 2.0.", assistant_prefix=False, source="Gemini API reference"
    ),
    ModelProfile(
        "grok-reasoning",
        (r"grok-(?:3-mini|4(?!.*non-reasoning)|code)",),
        "Grok models that reason, hidden.",
        assistant_prefix=False,
        reasoning=True,
        source="xAI API reference",
    ),
    ModelProfile("grok", (r"grok",), "Grok.", assistant_prefix=False, source="xAI API reference"),
    # Google's open weights.
    ModelProfile(
        "gemma-2",
        (
            r"gemma[-_]?2(?![a-z0-9])",
            r"gemma-(?:1\.1-)?(?:2|7)b",
            r"gemma:",
            r"gemma$",
            r"gemma2",
            r"codegemma",
            r"recurrentgemma",
            r"shieldgemma",
        ),
        "Gemma 1 and 2: the chat template refuses a system message.",
        system_role=False,
        source="chat template of google/gemma-2-9b-it",
    ),
    ModelProfile(
        "gemma-3",
        (r"gemma[-_]?3", r"medgemma"),
        "Gemma 3: the chat template puts the system text into the first user turn itself.",
        sampling={"temperature": 1.0, "top_p": 0.95, "top_k": 64},
        source="generation_config of google/gemma-3-4b-it",
    ),
    # Qwen.
    ModelProfile(
        "qwq",
        (r"qwq", r"qvq"),
        "QwQ: always reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95, "top_k": 40},
        source="model card of Qwen/QwQ-32B",
    ),
    ModelProfile(
        "qwen3-instruct",
        (r"qwen[-_]?3(?:[-_.].*)?[-_.](?:instruct|coder|base)",),
        "Qwen3 without reasoning (Instruct-2507, Coder, Base).",
        sampling={"temperature": 0.7, "top_p": 0.8, "top_k": 20},
        source="model card of Qwen/Qwen3-30B-A3B-Instruct-2507",
    ),
    ModelProfile(
        "qwen3",
        (r"qwen[-_]?3(?!\d)",),
        "Qwen3: reasons in <think> unless told not to.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0},
        source="model card of Qwen/Qwen3-8B, best practices",
    ),
    ModelProfile(
        "qwen2",
        (r"qwen",),
        "Qwen up to 2.5.",
        sampling={"temperature": 0.7, "top_p": 0.8, "top_k": 20},
        source="generation_config of Qwen/Qwen2.5-7B-Instruct",
    ),
    # Mistral.
    ModelProfile(
        "magistral",
        (r"magistral",),
        "Magistral: reasons in [THINK].",
        reasoning=True,
        thinking_tags=("[THINK]", "[/THINK]"),
        sampling={"temperature": 0.7, "top_p": 0.95},
        source="model card of mistralai/Magistral-Small-2509",
    ),
    ModelProfile(
        "mistral-v0.2",
        (r"mistral-7b-instruct-v0\.[12]", r"mixtral-8x7b"),
        "Mistral 7B v0.1, v0.2 and Mixtral 8x7B: the chat template refuses a system message.",
        system_role=False,
        source="chat template of mistralai/Mistral-7B-Instruct-v0.2",
    ),
    ModelProfile(
        "mistral",
        (r"mistral", r"mixtral", r"ministral", r"codestral", r"devstral", r"pixtral"),
        "Mistral models since v0.3.",
        source="Mistral API reference",
    ),
    # Meta.
    ModelProfile(
        "nemotron-reasoning",
        (r"(?:.*[-_])?nemotron-(?:super|ultra|nano)",),
        "Nvidia Nemotron with reasoning in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95},
        source="model card of nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    ),
    ModelProfile(
        "llama-3",
        (r"llama[-_]?[34]",),
        "Llama 3 and 4.",
        sampling={"temperature": 0.6, "top_p": 0.9},
        source="generation_config of meta-llama/Llama-3.1-8B-Instruct",
    ),
    ModelProfile(
        "llama", (r"(?:code|tiny)?llama", r"vicuna"), "Llama 1 and 2 and models made from them.", source=_CARD
    ),
    # Hugging Face.
    ModelProfile(
        "smollm3",
        (r"smollm[-_]?3",),
        "SmolLM3: reasons in <think> unless told not to.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95},
        source="model card of HuggingFaceTB/SmolLM3-3B",
    ),
    ModelProfile(
        "smollm",
        (r"smollm",),
        "SmolLM and SmolLM2: very small models; short and literal prompts work best.",
        sampling={"temperature": 0.2, "top_p": 0.9},
        source="model card of HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    # Microsoft.
    ModelProfile(
        "phi-4-reasoning",
        (r"phi-4(?:-mini)?(?:-flash)?-reasoning",),
        "Phi-4 reasoning: reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.8, "top_p": 0.95, "top_k": 50},
        source="model card of microsoft/Phi-4-reasoning",
    ),
    ModelProfile("phi", (r"phi[-_]?\d",), "Phi.", source=_CARD),
    # Others with reasoning in tags.
    ModelProfile(
        "glm",
        (r"glm-(?:4\.[5-9]|z1|[5-9])",),
        "GLM 4.5 and later, GLM-Z1: reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        source="model card of zai-org/GLM-4.5",
    ),
    ModelProfile(
        "kimi-thinking",
        (r"kimi-k2(?:\.\d+)?-thinking",),
        "Kimi K2 Thinking: reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 1.0},
        source="model card of moonshotai/Kimi-K2-Thinking",
    ),
    ModelProfile(
        "kimi",
        (r"kimi",),
        "Kimi without reasoning.",
        sampling={"temperature": 0.6},
        source="model card of moonshotai/Kimi-K2-Instruct",
    ),
    ModelProfile(
        "minimax",
        (r"minimax-m",),
        "MiniMax M: reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 1.0, "top_p": 0.95},
        source="model card of MiniMaxAI/MiniMax-M2",
    ),
    ModelProfile(
        "olmo-think",
        (r"olmo.*think",),
        "OLMo Think: reasons in <think>.",
        reasoning=True,
        thinking_tags=_THINK,
        sampling={"temperature": 0.6, "top_p": 0.95},
        source="model card of allenai/Olmo-3-7B-Think",
    ),
    ModelProfile("olmo", (r"olmo", r"tulu"), "OLMo and Tulu.", source=_CARD),
    ModelProfile("granite", (r"granite",), "IBM Granite.", source=_CARD),
    ModelProfile("command", (r"command-[ar]", r"c4ai-command", r"aya-"), "Cohere Command and Aya.", source=_CARD),
)

for _profile in (*_BUILT_IN, GENERIC):
    profiles.add(_profile)
