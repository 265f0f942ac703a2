"""Tools across the parts: the calculator example over ReasoningGym, played by the real small model."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import llenvs
from llenvs.core import Action, ToolCall, ToolDefinition, Trajectory
from llenvs.core.tools.arguments import ArgumentChecker
from llenvs.core.tools.errors import ToolFailed
from llenvs.evaluation import run_evaluation
from llenvs.evaluation.rollout import Rollout
from llenvs.inference import ChatMessage, PromptedToolsBackend, SamplingParams, ScriptedBackend
from llenvs.inference.backends import LlamaCppBackend
from llenvs.testing import check_environment

EXAMPLE = Path(__file__).parent.parent / "examples" / "tools_calculator.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_calculator", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tools_calculator"] = module
    spec.loader.exec_module(module)
    return module


EXAMPLE_MODULE: Any = _load()
calculate = EXAMPLE_MODULE.calculate


def make_environment() -> Any:
    tasks = llenvs.make("reasoning_gym/chain_sum", size=4, seed=0, max_terms=3, max_digits=2)
    return EXAMPLE_MODULE.CalculatorEnvironment(tasks, max_steps=4)


@pytest.fixture(scope="module")
def model() -> Iterator[PromptedToolsBackend]:
    with PromptedToolsBackend(LlamaCppBackend(), "hermes", tool_choice="required") as backend:
        yield backend


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * -3", -9),
        ("7 / 2", 3.5),
        ("7 // 2", 3),
        ("-7 % 4", 1),
        ("2 ** 10", 1024),
        ("15 - 43 - 75", -103),
        (" 0.5 + .25", 0.75),
        ("2 ** 0.5 ** 2", 2**0.25),
    ],
)
def test_the_calculator_computes(expression: str, value: float) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').getcwd()",
        "().__class__",
        "[1][0]",
        "print(1)",
        "x",
        "1 if 1 else 2",
        "'a' * 9",
        "True + 1",
        "1j",
        "1 +",
        "1 / 0",
        "9 ** 9 ** 9",
        "(-8) ** 0.5",
        "10.0 ** 999",
        "2 ** 4095 * 2 ** 4095",
        "(" * 99 + "1",
        "-" * 90_000 + "1",
        "1\x00",
    ],
)
def test_the_calculator_refuses_what_is_no_arithmetic(expression: str) -> None:
    with pytest.raises(ToolFailed):
        calculate(expression)


def test_the_environment_conforms() -> None:
    check_environment(make_environment)


def test_its_score_is_the_score_of_the_task() -> None:
    with make_environment() as env:
        start = Trajectory(env.reset(options={"task_index": 0})[0])
        assert start.initial_state.observation.prompt.endswith("15 - 43 - 75 =")
        counted = start.step(env, Action.from_tool_call("calculate", {"expression": "15 - 43 - 75"}))
        assert counted.final_state.observation.tool_results[0].content == "-103"
        assert "score" not in counted.transitions[0].rewards
        right = counted.step(env, Action.from_tool_call("submit_answer", {"answer": "-103"}))
        wrong = counted.step(env, Action.from_tool_call("submit_answer", {"answer": "103"}))
        assert (right.done, right.total_reward, wrong.done, wrong.total_reward) == (True, 1.0, True, 0.0)
        assert env.spec.is_success(right.transitions[-1].rewards)
        silent = start
        while not silent.done:
            silent = silent.step(env, Action("-103"))
        assert (len(silent), silent.total_reward) == (4, 0.0)


def test_a_call_that_cannot_be_read_is_told_to_the_model_which_tries_again() -> None:
    answers = iter(
        [
            '<tool_call>\n{"name": "submit_answer", "arguments": {"answer": "-103"',
            '<tool_call>\n{"name": "submit_answer", "arguments": {"answer": "-103"}}\n</tool_call>',
        ]
    )
    asked: list[tuple[ChatMessage, ...]] = []

    def answer(request: Any) -> str:
        asked.append(request.messages)
        return next(answers)

    with make_environment() as env:
        result = run_evaluation(env, PromptedToolsBackend(ScriptedBackend(answer)), num_tasks=1, log=())
    assert result.success_rate == 1.0
    assert [m.role for m in asked[1]] == ["system", "user", "assistant", "user"]
    assert asked[1][2].content == '<tool_call>\n{"name": "submit_answer", "arguments": {"answer": "-103"'
    assert "the JSON ends too early" in asked[1][3].content
    assert result.signals["tool_validity"].mean == 0.5


def test_the_small_model_plays_it_through_forced_calls(model: PromptedToolsBackend) -> None:
    rollouts: list[Rollout] = []
    with make_environment() as env:
        result = run_evaluation(
            env,
            model,
            sampling_params=SamplingParams(temperature=0.0, max_tokens=96),
            system_prompt=EXAMPLE_MODULE.SYSTEM_PROMPT,
            log=(),
            on_trajectory=rollouts.append,
        )
    assert (result.num_done, result.num_errors) == (4, 0)
    # greedy decoding: the sums of one digit are computed by the tool and submitted
    assert result.success_rate is not None
    assert result.success_rate >= 0.5
    assert result.signals["tool_validity"].mean == 1.0
    for rollout in rollouts:
        assert rollout.trajectory is not None
        for transition in rollout.trajectory:
            assert len(transition.action.tool_calls) == 1
            assert not transition.action.tool_calls[0].problem
            assert transition.generation is not None
            assert transition.generation.completion_token_ids is not None


ADD = ToolDefinition(
    "add",
    "Add two integers",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@pytest.mark.parametrize(
    ("question", "arguments", "prompt_tokens", "completion_tokens"),
    [
        ("Add 2 and 40 with the tool.", {"a": 2, "b": 40}, 166, 37),
        ("What is 3 plus 4? Use add.", {"a": 3, "b": 4}, 166, 36),
    ],
)
def test_right_values_of_forced_calls(
    model: PromptedToolsBackend,
    question: str,
    arguments: dict[str, int],
    prompt_tokens: int,
    completion_tokens: int,
) -> None:
    chat = [ChatMessage.system("You are a helpful AI assistant."), ChatMessage.user(question)]
    generation = model.chat(chat, SamplingParams(temperature=0.0, max_tokens=96), tools=(ADD,))
    assert generation.tool_calls == (ToolCall("add", arguments),)
    assert generation.usage.prompt_tokens == prompt_tokens
    assert generation.completion_token_ids is not None
    assert len(generation.completion_token_ids) == completion_tokens
    assert generation.completion_token_ids[-2:] == (46, 2)


def test_the_engine_takes_the_grammar_of_a_rich_schema(model: PromptedToolsBackend) -> None:
    schema = {
        "type": "object",
        "properties": {
            "shape": {"enum": ["circle", 'a "quoted" one', 3]},
            "points": {
                "type": "array",
                "items": {"$ref": "#/$defs/Point"},
                "minItems": 1,
                "maxItems": 2,
            },
            "label": {"anyOf": [{"type": "string", "maxLength": 8}, {"type": "null"}]},
            "size": {"type": "string", "pattern": "^[0-9+*/%(). -]{1,9}$"},
            "extra": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 5},
        },
        "required": ["points", "size"],
        "$defs": {
            "Point": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "integer", "minimum": 0}},
                "required": ["x", "y"],
            }
        },
    }
    tool = ToolDefinition("draw", "Draw a shape", schema)
    checker = ArgumentChecker(tool)
    read = 0
    for seed in range(6):
        sampling = SamplingParams(temperature=1.0, seed=seed, max_tokens=200)
        generation = model.chat("Draw a circle.", sampling, tools=(tool,))
        (call,) = generation.tool_calls
        if not call.problem:  # else it was cut off by the limit of tokens
            assert checker.problems(call.arguments) == [], json.dumps(dict(call.arguments))
            read += 1
    assert read >= 3
