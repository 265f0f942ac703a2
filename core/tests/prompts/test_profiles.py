import re

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts import (
    ModelProfile,
    UnknownProfile,
    detect_profile,
    get_profile,
    list_profiles,
    register_profile,
)
from llenvs.inference.prompts.profiles import profiles

NAMES = [
    ("gpt-4o", "gpt-chat"),
    ("gpt-4o-mini-2024-07-18", "gpt-chat"),
    ("gpt-4.1-nano", "gpt-chat"),
    ("gpt-3.5-turbo", "gpt-chat"),
    ("ft:gpt-4o-mini-2024-07-18:acme::AbC123", "gpt-chat"),
    ("gpt-5-chat-latest", "gpt-chat"),
    ("gpt-5.2-chat-latest", "gpt-chat"),
    ("chatgpt-4o-latest", "gpt-chat"),
    ("gpt-5", "gpt-5"),
    ("gpt-5-mini-2025-08-07", "gpt-5"),
    ("gpt-5.1-codex", "gpt-5"),
    ("openai/gpt-oss-20b", "gpt-oss"),
    ("o1", "openai-o"),
    ("o1-2024-12-17", "openai-o"),
    ("o3-mini", "openai-o"),
    ("openai/o4-mini", "openai-o"),
    ("o3-deep-research", "openai-o"),
    ("o1-mini", "openai-o1-preview"),
    ("o1-preview-2024-09-12", "openai-o1-preview"),
    ("AIDC-AI/Marco-o1", "generic"),
    ("claude-opus-4-7", "claude-adaptive"),
    ("anthropic/claude-4.7-opus", "claude-adaptive"),
    ("claude-sonnet-5", "claude-adaptive"),
    ("claude-opus-4-6", "claude-4.6"),
    ("anthropic/claude-sonnet-4.6", "claude-4.6"),
    ("claude-opus-4-1-20250805", "claude"),
    ("claude-sonnet-4-5-20250929", "claude"),
    ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude"),
    ("gemini-2.5-pro", "gemini-thinking"),
    ("gemini-1.5-flash", "gemini"),
    ("models/gemini-2.0-flash", "gemini"),
    ("x-ai/grok-4", "grok-reasoning"),
    ("grok-4-fast-non-reasoning", "grok"),
    ("Qwen/Qwen3-8B", "qwen3"),
    ("qwen3:0.6b", "qwen3"),
    ("Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3"),
    ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-instruct"),
    ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-instruct"),
    ("Qwen/Qwen2.5-0.5B-Instruct", "qwen2"),
    ("Qwen/QwQ-32B", "qwq"),
    ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1"),
    ("unsloth/DeepSeek-R1-Distill-Llama-8B-GGUF", "deepseek-r1"),
    ("deepseek-reasoner", "deepseek-r1"),
    ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1-0528"),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek-r1-0528"),
    ("deepseek-chat", "deepseek"),
    ("deepseek-ai/DeepSeek-V3.1", "deepseek"),
    ("meta-llama/Llama-3.1-8B-Instruct", "llama-3"),
    ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3"),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-3"),
    ("llama3.2:1b", "llama-3"),
    ("meta-llama/Llama-2-7b-chat-hf", "llama"),
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama"),
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "nemotron-reasoning"),
    ("google/gemma-2-9b-it", "gemma-2"),
    ("google/gemma-7b-it", "gemma-2"),
    ("google/gemma-1.1-2b-it", "gemma-2"),
    ("gemma2:9b", "gemma-2"),
    ("google/codegemma-7b-it", "gemma-2"),
    ("google/gemma-3-4b-it", "gemma-3"),
    ("gemma3:27b", "gemma-3"),
    ("google/gemma-3n-E2B-it", "gemma-3"),
    ("google/gemma-3-270m-it", "gemma-3"),
    ("mistralai/Mistral-7B-Instruct-v0.2", "mistral-v0.2"),
    ("TheBloke/Mistral-7B-Instruct-v0.1-GGUF", "mistral-v0.2"),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral-v0.2"),
    ("mistralai/Mistral-7B-Instruct-v0.3", "mistral"),
    ("mistral-large-latest", "mistral"),
    ("mistralai/Ministral-8B-Instruct-2410", "mistral"),
    ("mistralai/Magistral-Small-2509", "magistral"),
    ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm"),
    ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm"),
    ("HuggingFaceTB/SmolLM3-3B", "smollm3"),
    ("microsoft/Phi-3-mini-4k-instruct", "phi"),
    ("microsoft/phi-4", "phi"),
    ("microsoft/Phi-4-mini-reasoning", "phi-4-reasoning"),
    ("zai-org/GLM-4.5-Air", "glm"),
    ("moonshotai/Kimi-K2-Instruct", "kimi"),
    ("moonshotai/Kimi-K2-Thinking", "kimi-thinking"),
    ("MiniMaxAI/MiniMax-M2", "minimax"),
    ("allenai/OLMo-2-1124-7B-Instruct", "olmo"),
    ("allenai/Olmo-3-7B-Think", "olmo-think"),
    ("ibm-granite/granite-3.3-8b-instruct", "granite"),
    ("CohereForAI/c4ai-command-r-plus", "command"),
    ("my-own-model", "generic"),
    ("", "generic"),
]


@pytest.mark.parametrize(("model", "profile"), NAMES)
def test_the_profile_is_found_from_the_name(model: str, profile: str) -> None:
    assert detect_profile(model).name == profile
    assert detect_profile(model.upper()).name == profile


@pytest.mark.parametrize(
    ("path", "profile"),
    [
        ("runs/Qwen3-8B-sft/checkpoint-500", "qwen3"),
        ("cache/models--google--gemma-2-9b-it/snapshots/11c9b309abf73637e4b6f9a3fa1e92e615547819", "gemma-2"),
        ("mistral/gemma-2-2b-it.Q4_K_M.gguf", "gemma-2"),
        ("C:\\models\\SmolLM2-135M-Instruct.Q4_1.gguf", "smollm"),
        ("openrouter/deepseek/deepseek-r1:free", "deepseek-r1"),
        ("Qwen/Qwen3-8B/", "qwen3"),
    ],
)
def test_the_last_telling_part_of_a_path_counts(path: str, profile: str) -> None:
    assert detect_profile(path).name == profile


def test_what_the_families_accept() -> None:
    without_system = {p.name for p in list_profiles() if not p.system_role}
    assert without_system == {"deepseek-r1", "openai-o1-preview", "gemma-2", "mistral-v0.2"}
    without_sampling = {p.name for p in list_profiles() if not p.accepts_sampling}
    assert without_sampling == {"openai-o1-preview", "openai-o", "gpt-5", "claude-adaptive"}
    assert detect_profile("Qwen/Qwen3-8B").thinking_tags == ("<think>", "</think>")
    assert detect_profile("Qwen/Qwen3-8B").sampling == {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "min_p": 0.0,
    }
    assert detect_profile("mistralai/Magistral-Small-2509").thinking_tags == ("[THINK]", "[/THINK]")
    assert detect_profile("SmolLM2-135M-Instruct.Q4_1.gguf").sampling == {"temperature": 0.2, "top_p": 0.9}
    assert not detect_profile("claude-opus-4-6").assistant_prefix
    assert detect_profile("claude-sonnet-4-5").assistant_prefix
    assert not detect_profile("gpt-4o").reasoning
    assert detect_profile("gpt-4o").accepts_sampling


def test_every_built_in_profile_is_reachable() -> None:
    reached = {profile for _, profile in NAMES}
    assert {p.name for p in list_profiles()} == reached


def test_a_registered_profile_goes_before_the_built_in_ones() -> None:
    own = ModelProfile("own", (r"qwen3-8b-house",), system_role=False)
    register_profile(own)
    try:
        assert detect_profile("Qwen3-8B-house").name == "own"
        assert detect_profile("Qwen3-8B").name == "qwen3"
        with pytest.raises(InvalidOption, match="already registered"):
            register_profile(own)
    finally:
        profiles._items.pop("own")


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UnknownProfile, match=re.escape("unknown model profile 'qwen33'; did you mean 'qwen3'")):
        get_profile("qwen33")


def test_a_broken_pattern_is_refused() -> None:
    with pytest.raises(InvalidOption, match="no regular expression"):
        ModelProfile("broken", ("(",))
