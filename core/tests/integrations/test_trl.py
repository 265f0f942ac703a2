"""TRL: reward functions, environments and rollouts, in GRPOTrainer itself."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from llenvs import Action, DatasetProvider, Scorer, environment_registry, make
from llenvs.core import ToolDefinition
from llenvs.core.errors import InvalidOption
from llenvs.integrations import PrefixBreak, TaskMismatch

pytest.importorskip("trl", reason="needs TRL: pip install trl==1.16.0 jmespath, with torch")
pytest.importorskip("torch", reason="needs torch")

from grpo import WatchedTrainer, trained
from guess import GuessAdapter
from toy_model import scripted_model, toy_model
from toy_tokenizer import toy_tokenizer
from trl.chat_template_utils import get_training_chat_template, qwen3_chat_template

from llenvs.integrations.trl import (
    make_trl_dataset,
    make_trl_environment,
    make_trl_reward_fn,
    make_trl_rollout_fn,
)
from llenvs.integrations.trl_environment import EnvironmentFailed
from llenvs.integrations.trl_rollout import RolloutInvalid, _checked, _Limits, _Running
from llenvs.integrations.trl_tools import tool_method

BRIDGE = "198 265 84 82 68 81 198 77 78 266 198 265 64 82 82 72 82 83 64 77 83 198"


@pytest.fixture(autouse=True)
def _guess_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environment_registry._registered, "guess", GuessAdapter())
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def log(trainer: Any) -> dict[str, float]:
    """What the trainer logged for its first step."""
    return dict(trainer.state.log_history[0])


class Turns:
    """A policy for one task at a time: completion i of a group says the turns of script i."""

    def __init__(self, *scripts: list[str | list[int]]) -> None:
        self.scripts = scripts
        self.prompts: list[str] = []
        self._first = 0
        self._said: set[tuple[int, int]] = set()

    def __call__(self, prompt: str) -> str | list[int]:
        self.prompts.append(prompt)
        turn = prompt.count("<|im_start|>assistant") - 1
        if turn == 0:
            number, self._first = self._first, self._first + 1
        else:  # the first whose turns so far are in the prompt: a trainer keeps the order
            number = next(
                n
                for n, script in enumerate(self.scripts)
                if (n, turn) not in self._said
                and len(script) > turn
                and all(isinstance(s, list) or s in prompt for s in script[:turn])
            )
            self._said.add((number, turn))
        return self.scripts[number % len(self.scripts)][turn]


# -- rewards of single turns ------------------------------------------------------------------------------


def test_logged_rewards_are_those_of_the_scorer(tmp_path: Path) -> None:
    said = ["<answer>100</answer>", "<answer>140</answer>", "100", "I give up"]
    env = make("reasoning_gym/leg_counting", size=100, seed=42)
    policy = Turns(*[[text] for text in said])
    reward = make_trl_reward_fn(env)
    trainer = trained(
        scripted_model(policy), tmp_path, train_dataset=make_trl_dataset(env, indices=[0]), reward_funcs=reward
    )
    scorer = Scorer(env)
    rewards = [scorer.score(0, text).reward for text in said]
    assert rewards == [1.0, 0.0, 0.0, 0.0]
    assert log(trainer)["rewards/llenvs_leg_counting/mean"] == pytest.approx(sum(rewards) / 4)  # type: ignore[arg-type]
    assert log(trainer)["reward"] == pytest.approx(0.25)
    assert log(trainer)["llenvs/error"] == 0.0
    assert log(trainer)["grad_norm"] > 0
    for row, text in zip(trainer.rows(), said, strict=True):
        assert row["ids"] == [*toy_tokenizer()(text).input_ids, 266]
        assert row["mask"] == [1] * len(row["ids"])
    assert policy.prompts[0].count("3 sea slugs, 12 deers") == 1
    assert "100" not in policy.prompts[0]  # the answer


@pytest.mark.parametrize(
    ("rewards", "beside", "advantages"),
    [
        ([1, 1, 0, 0], None, [0.86588, 0.86588, -0.86588, -0.86588]),
        ([None, 0, 1, 0], None, [0.0, -0.57725, 1.15450, -0.57725]),
        ([None, None, None, None], None, [0.0, 0.0, 0.0, 0.0]),
        ([1, None, 0, 1], 0.1, [0.86588, -0.86588, -0.86588, 0.86588]),  # None counts as 0: the docs warn
    ],
)
def test_a_failure_leaves_the_group_unless_another_function_scores_it(
    tmp_path: Path, rewards: list[int | None], beside: float | None, advantages: list[float]
) -> None:
    """Task 1 of `times` fails; a task fails for all completions or none, so several are mixed."""
    env = make("arithmetic/times", fails=(1,))
    reward = make_trl_reward_fn(env)
    identities = {i: DatasetProvider(env)[i].task_id for i in (1, 2)}
    wanted = iter(rewards)

    def scored(prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
        chosen = [next(wanted) for _ in completions]
        columns["llenvs"] = [identities[1 if each is None else 2] for each in chosen]
        answers = [f"<answer>{4 if each else 5}</answer>" for each in chosen]
        given = reward(prompts, answers, **columns)
        assert given == chosen
        return given

    functions: list[Any] = [scored]
    if beside is not None:
        functions.append(lambda completions, **_: [beside] * len(completions))
    policy = Turns(["a"], ["b"], ["c"], ["d"])
    trainer = trained(
        scripted_model(policy), tmp_path, train_dataset=make_trl_dataset(env, indices=[0]), reward_funcs=functions
    )
    assert [row["advantage"] for row in trainer.rows()] == pytest.approx(advantages, abs=1e-4)
    assert log(trainer)["llenvs/error"] == pytest.approx(sum(r is None for r in rewards) / 4)


def test_rewards_can_be_pickled_and_mix_environments() -> None:
    times, legs = make("arithmetic/times", by=3), make("reasoning_gym/leg_counting", size=100, seed=42)
    rows = [DatasetProvider(times)[2].row(), DatasetProvider(legs)[0].row()]
    mixed = make_trl_reward_fn()
    for reward in (mixed, pickle.loads(pickle.dumps(mixed))):  # noqa: S301 - our own
        assert reward.__name__ == "llenvs"
        completions = [[{"role": "assistant", "content": f"<answer>{n}</answer>"}] for n in (6, 100)]
        columns = {name: [row[name] for row in rows] for name in ("llenvs", "task_index")}
        assert reward([row["prompt"] for row in rows], completions, **columns) == [1.0, 1.0]
    one = pickle.loads(pickle.dumps(make_trl_reward_fn(times)))  # noqa: S301 - our own
    assert one.__name__ == "llenvs_times"
    assert one(["?"], ["<answer>6</answer>"], task_index=[2]) == [1.0]
    with pytest.raises(InvalidOption, match="make_trl_environment or make_trl_rollout_fn"):
        make_trl_reward_fn(make("arithmetic/climb"))


def test_a_row_of_another_version_ends_the_run(tmp_path: Path) -> None:
    dataset = make_trl_dataset(make("arithmetic/times", by=3))
    other = make("arithmetic/times", by=2)
    other.origin = None  # made by hand: taken for the environment of that name
    with pytest.raises(TaskMismatch):
        trained(
            scripted_model(Turns(["x"])), tmp_path, train_dataset=dataset, reward_funcs=make_trl_reward_fn(other)
        )


def test_a_real_model_is_trained_on_a_stream(tmp_path: Path) -> None:
    env = make("reasoning_gym/leg_counting", size=100, seed=42)
    reward, seen = make_trl_reward_fn(env), []

    def watched(prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
        given = reward(prompts, completions, **columns)
        seen.append((columns["task_index"], [c[-1]["content"] for c in completions], given))
        return given

    def length(completions: Any, **_: Any) -> list[float]:  # something that it can learn
        return [float(len(c[-1]["content"])) for c in completions]

    dataset = make_trl_dataset(env, streaming=True)
    model = toy_model()
    before = model.model.embed_tokens.weight.clone()
    trainer = trained(
        model,
        tmp_path,
        train_dataset=dataset,
        reward_funcs=[watched, length],
        config={"max_steps": 3, "max_completion_length": 16, "learning_rate": 1e-3},
    )
    assert len(seen) == 3
    scorer = Scorer(env)
    for indices, texts, given in seen:
        assert len(set(indices)) == 1  # one group
        assert given == [r.reward for r in scorer.score_batch(indices, texts)]
    history = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["rewards/watched/mean"] for entry in history] == [sum(s[2]) / 4 for s in seen]
    assert not (before == model.model.embed_tokens.weight).all()


# -- environment_factory ----------------------------------------------------------------------------------


def call(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


GUESSES = (
    [call("guess", {"number": 5}), call("guess", {"number": 7}), "done"],
    [call("guess", {"number": 7}), "ok"],
    ["no tool"],
    [call("nope", {}), "eh"],
)


def qwen3(text: Any = None) -> Any:
    """The toy tokenizer with Qwen3's template."""
    return toy_tokenizer(text or qwen3_chat_template)


def runs(mask: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for bit in mask:
        found = [*found[:-1], (bit, found[-1][1] + 1)] if found and found[-1][0] == bit else [*found, (bit, 1)]
    return found


NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


def test_the_guess_game_through_an_environment_factory(tmp_path: Path) -> None:
    factory = make_trl_environment("guess/number")
    trainer = trained(
        scripted_model(Turns(*GUESSES)),
        tmp_path,
        tokenizer=qwen3(),
        config=NO_THINKING,
        train_dataset=make_trl_dataset("guess/number", indices=[0]),
        environment_factory=factory,
    )
    assert [runs(row["mask"]) for row in trainer.rows()] == [
        [(1, 50), (0, 36), (1, 50), (0, 37), (1, 5)],
        [(1, 50), (0, 37), (1, 2)],
        [(1, 8)],
        [(1, 38), (0, 63), (1, 3)],
    ]
    logged = log(trainer)
    assert logged["tools/call_frequency"] == 1.0
    assert logged["tools/failure_frequency"] == 0.25
    assert logged["rewards/llenvs_number/mean"] == logged["reward"] == 0.5
    assert [row["advantage"] for row in trainer.rows()] == pytest.approx(
        [0.86588, 0.86588, -0.86588, -0.86588], abs=1e-4
    )
    # the masks cover exactly what the model said
    for row, script in zip(trainer.rows(), GUESSES, strict=True):
        said = toy_tokenizer().decode([t for t, bit in zip(row["ids"], row["mask"], strict=True) if bit])
        assert said == "".join(f"{text}<|im_end|>" for text in script)
    # the rewards are those of the scorer for the same actions
    from llenvs import Action

    scorer = Scorer("guess/number")
    played = [[Action.from_tool_call("guess", {"number": n}) for n in numbers] for numbers in ([5, 7], [7], [])]
    assert [scorer.score(0, actions).reward for actions in played] == [1.0, 1.0, 0.0]
    assert [environment.get_reward() for environment in trainer.environments] == [1.0, 1.0, 0.0, 0.0]


def test_an_environment_starts_from_its_row_and_may_be_used_again() -> None:
    factory = make_trl_environment("guess/number")
    environment = factory()
    rows = [item.row() for item in DatasetProvider("guess/number")]
    for row, target in zip(rows, (7, 3, 9), strict=True):
        assert environment.reset(**row) is None  # the row's prompt is the observation
        assert environment.get_reward() == 0.0
        assert environment.guess(number=target) == "correct"  # type: ignore[attr-defined]
        assert environment.get_reward() == 1.0
        steps = environment._episode.turns  # type: ignore[union-attr]
        assert environment.guess(number=1) == "The episode is over."  # type: ignore[attr-defined]
        assert (environment.get_reward(), environment._episode.turns) == (1.0, steps)  # type: ignore[union-attr]
    assert environment.reset(**{**rows[0], "prompt": [{"role": "user", "content": ""}]}) == "Find my number."
    with pytest.raises(InvalidOption, match="task_index"):
        environment.reset(prompt="x")
    again = pickle.loads(pickle.dumps(factory))()  # noqa: S301 - our own
    again.reset(**rows[1])
    assert again.guess(number=4) == "lower"
    # what the benchmark refuses is answered in its words, and is no failure
    assert "number" in again.guess(numero=4)
    assert again.get_reward() == 0.0


def test_text_games_have_one_tool(tmp_path: Path) -> None:
    acts = [call("act", {"action": "up"})] * 2
    down = call("act", {"action": "down"})
    trainer = trained(
        scripted_model(Turns([*acts, "there"], [acts[0], down, "x"], [down, "x"], ["up"])),
        tmp_path,
        tokenizer=qwen3(),
        config=NO_THINKING,
        train_dataset=make_trl_dataset("arithmetic/climb", indices=[0]),
        environment_factory=make_trl_environment("arithmetic/climb", name="Climb"),
    )
    scorer = Scorer("arithmetic/climb")
    expected = [scorer.score(0, actions).reward for actions in (["up", "up"], ["up", "down"], ["down"], [])]
    assert expected == [3.0, 0.0, -1.0, 0.0]
    assert [environment.get_reward() for environment in trainer.environments] == expected
    assert log(trainer)["rewards/Climb/mean"] == pytest.approx(sum(expected) / 4)  # type: ignore[arg-type]


def test_a_failed_environment_is_no_zero(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = make("guess/number", fails=(0,))
    trainer = trained(
        scripted_model(Turns(*GUESSES)),
        tmp_path,
        tokenizer=qwen3(),
        config=NO_THINKING,
        train_dataset=make_trl_dataset(env, indices=[0]),
        environment_factory=make_trl_environment(env),
    )
    assert [environment.get_reward() for environment in trainer.environments] == [None, None, 0.0, 0.0]
    assert "task 0 has no reward: OSError: the secret 7 is lost" in caplog.text
    shown = toy_tokenizer().decode(trainer.rows()[0]["ids"])
    assert "The environment failed." in shown
    assert "secret" not in shown
    assert env.steps == 4  # type: ignore[attr-defined]  # each of the two was tried twice
    with pytest.raises(EnvironmentFailed):
        trainer.environments[0].guess(number=3)


def test_tools_are_described_as_the_environment_describes_them() -> None:
    from transformers.utils import get_json_schema

    schema = {
        "type": "object",
        "properties": {
            "where": {"type": "string", "description": "The place.", "enum": ["here", "there"]},
            "count": {"type": "integer", "description": "How many.\nAt least one.", "minimum": 1},
            "names": {"type": "array", "items": {"type": "string"}, "description": "Of whom."},
            "note": {"type": ["string", "null"], "description": "A note."},
            "filter": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "What."},
            "exact": {"type": "boolean"},
        },
        "required": ["where", "names"],
    }
    seen: list[Any] = []

    def told(self: Any, name: str, arguments: Any) -> str:
        seen.append((name, arguments))
        return "done"

    method = tool_method(ToolDefinition("find-it", "Find\nit.", schema), told)
    made = get_json_schema(method)["function"]
    assert (made["name"], made["description"]) == ("find-it", "Find it.")
    parameters = made["parameters"]
    assert set(parameters["required"]) == {"where", "names"}
    properties = parameters["properties"]
    assert properties["where"] == {"type": "string", "enum": ["here", "there"], "description": "The place."}
    assert properties["count"]["type"] == "integer"
    assert properties["count"]["description"] == 'How many. At least one. JSON Schema: {"minimum": 1}'
    assert properties["names"] == {"type": "array", "items": {"type": "string"}, "description": "Of whom."}
    assert properties["note"]["nullable"] is True
    assert '"x": {"type": "number"}' in properties["filter"]["description"]
    assert properties["exact"] == {"type": "boolean", "description": "exact"}
    assert method(None, where="here", names=["a"]) == "done"
    assert seen == [("find-it", {"where": "here", "names": ["a"]})]
    for name in ("reset", "get_reward", "_hidden"):
        with pytest.raises(InvalidOption, match="make_trl_rollout_fn"):
            make_trl_environment("guess/number", tools=[ToolDefinition(name)])
    with pytest.raises(InvalidOption, match="no name that an argument"):
        tool_method(ToolDefinition("f", "", {"properties": {"a-b": {}}}), told)


def test_what_a_signature_cannot_say_is_described() -> None:
    from transformers.utils import get_json_schema

    def made(description: str, **properties: Any) -> tuple[str, dict[str, Any]]:
        point = {"type": "object", "properties": {"x": {"type": "number"}}}
        schema = {"properties": properties, "$defs": {"Point": point}}
        tool = get_json_schema(tool_method(ToolDefinition("f", description, schema), lambda *_: ""))["function"]
        return tool["description"], tool["parameters"]["properties"]

    # words that end a section of a docstring
    description, properties = made(
        "Find it. Args: a. Returns: a list.",
        a={"type": "string", "description": "Raises: no"},
        b={"type": "integer"},
    )
    assert description == "Find it. Args : a. Returns : a list."
    assert properties == {
        "a": {"type": "string", "description": "Raises : no"},
        "b": {"type": "integer", "description": "b"},
    }
    # an enum that a Literal cannot say, types by reference, nullable
    _, properties = made(
        "",
        share={"type": "number", "enum": [0.5, 1.5]},
        at={"$ref": "#/$defs/Point", "description": "Where."},
        path={"type": "array", "items": {"$ref": "#/$defs/Point"}},
        note={"type": "string", "nullable": True},
        maybe={"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
        of=[{"type": "string"}],
    )
    assert properties["share"] == {"type": "number", "description": 'JSON Schema: {"enum": [0.5, 1.5]}'}
    assert properties["at"]["type"] == "object"
    assert properties["at"]["description"] == 'Where. JSON Schema: {"properties": {"x": {"type": "number"}}}'
    assert properties["path"]["items"] == {"type": "object"}
    assert '"x": {"type": "number"}' in properties["path"]["description"]
    assert (properties["note"]["type"], properties["note"]["nullable"]) == ("string", True)
    assert properties["maybe"]["nullable"] is True
    assert "$ref" not in str(properties)


def test_a_tool_may_have_any_name() -> None:
    """Those of the class's own attributes too."""
    names = ("episode", "close", "turns", "pool")
    environment = make_trl_environment("guess/number", tools=[ToolDefinition(name) for name in names])()
    environment.reset(**DatasetProvider("guess/number")[0].row())
    for name in names:
        assert f"{name}" in getattr(environment, name)()  # the environment's own answer: it has no such tool
    assert environment.get_reward() == 0.0


# -- rollout_func -----------------------------------------------------------------------------------------


def test_ids_and_mask_of_a_rollout(tmp_path: Path) -> None:
    """Turns "ok" and "16" with the observation "no" between them; a text whose ids are not the tokenizer's."""
    from arithmetic import ArithmeticOptions, Climb

    class No(Climb):
        def _start(self, task_index: int, seed: int, options: Any) -> Any:
            from llenvs import Observation
            from llenvs.core.environment import Start

            return Start(Observation("hi"), {"at": 0, "target": 2})

        def _advance(self, state: Any, action: Any) -> Any:
            from dataclasses import replace

            from llenvs import Observation

            advance = super()._advance(state, action)
            return replace(advance, observation=Observation("no"), terminated=action.text == "16")

    env = No(ArithmeticOptions())
    rollout = make_trl_rollout_fn(env, max_turns=2)
    trainer = trained(
        scripted_model(Turns(["ok", "16"], [[83, 71, 68, 266], "16"], ["16"], [[127, 266], "ok"])),
        tmp_path,
        train_dataset=make_trl_dataset(env, indices=[0], identity_in_prompt=True),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
    )
    bridge = [int(n) for n in BRIDGE.split()]
    rows = trainer.rows()
    assert trainer.batches[0]["prompt_ids"][0].tolist() == [
        265, 84, 82, 68, 81, 198, 71, 72, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198,
    ]  # fmt: skip
    assert rows[0]["ids"] == [259, 266, *bridge, 260, 266]
    assert rows[0]["mask"] == [1, 1, *[0] * 22, 1, 1]
    assert rows[1]["ids"] == [83, 71, 68, 266, *bridge, 260, 266]  # "the" stays as it was sampled
    assert rows[1]["mask"] == [1, 1, 1, 1, *[0] * 22, 1, 1]
    assert rows[2]["ids"] == [260, 266]
    assert rows[3]["ids"][:2] == [127, 266]
    assert log(trainer)["completions/mean_length"] == (4 + 6 + 2 + 4) / 4


def test_the_guess_game_through_a_rollout(tmp_path: Path) -> None:
    rollout = make_trl_rollout_fn("guess/number", max_turns=3)
    scripts = [*GUESSES[:2], ["no tool", "none", "no"], [*GUESSES[3], "oh"]]
    trainer = trained(
        scripted_model(Turns(*scripts)),
        tmp_path,
        tokenizer=qwen3(get_training_chat_template(qwen3())),
        config=NO_THINKING,
        train_dataset=make_trl_dataset("guess/number", indices=[0], identity_in_prompt=True),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
    )
    rows = trainer.rows()
    assert runs(rows[0]["mask"])[:3] == [(1, 50), (0, 36), (1, 50)]  # and over, with the right guess
    assert runs(rows[1]["mask"]) == [(1, 50)]
    said = [toy_tokenizer().decode([t for t, b in zip(r["ids"], r["mask"], strict=True) if b]) for r in rows]
    assert said[0] == GUESSES[0][0] + "<|im_end|>" + GUESSES[0][1] + "<|im_end|>"
    assert said[1] == GUESSES[1][0] + "<|im_end|>"
    logged = log(trainer)
    assert logged["rewards/llenvs_number/mean"] == 0.5
    assert logged["llenvs/found"] == 0.5
    assert logged["llenvs/error"] == 0.0
    # an unknown tool is answered by the environment itself, and it hears texts without a call too
    assert "nope" in toy_tokenizer().decode(rows[3]["ids"])
    assert "You called no tool." in toy_tokenizer().decode(rows[2]["ids"])
    assert said[2] == "no tool<|im_end|>none<|im_end|>no<|im_end|>"
    assert logged["llenvs/turns"] == (2 + 1 + 3 + 3) / 4


def test_a_rollout_that_fails_and_one_that_is_cut(tmp_path: Path) -> None:
    env = make("guess/number", fails=(0,))
    rollout = make_trl_rollout_fn(env)
    options = {"tokenizer": qwen3(get_training_chat_template(qwen3())), "reward_funcs": rollout.reward}
    trainer = trained(
        scripted_model(Turns(*GUESSES)),
        tmp_path,
        config=NO_THINKING,
        train_dataset=make_trl_dataset(env, indices=[0], identity_in_prompt=True),
        rollout_func=rollout,
        **options,
    )
    logged = log(trainer)
    assert logged["llenvs/error"] == 1.0
    assert [row["advantage"] for row in trainer.rows()] == [0.0] * 4

    rollout = make_trl_rollout_fn("arithmetic/climb")
    endless = [120] * 40  # no end of turn
    trainer = trained(
        scripted_model(Turns(["up", "up"], [endless], ["up", endless], ["down"] * 9)),
        tmp_path,
        config={"max_completion_length": 50},
        train_dataset=make_trl_dataset("arithmetic/climb", indices=[0], identity_in_prompt=True),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
    )
    lengths = [len(row["ids"]) for row in trainer.rows()]
    assert lengths == [39, 40, 50, 44]  # the last two have no room for more
    masks = [row["mask"] for row in trainer.rows()]
    assert all(mask[-1] == 1 for mask in masks)


def test_logprobs_of_the_engine_stay_with_their_tokens(tmp_path: Path) -> None:
    """vLLM gives them; here they are made up, one after another."""

    class WithLogprobs(WatchedTrainer):
        def _generate_single_turn(self, *arguments: Any, **options: Any) -> Any:
            completions, _ = super()._generate_single_turn(*arguments, **options)
            return completions, [[-0.5 - n for n in range(len(ids))] for ids in completions]

    rollout = make_trl_rollout_fn("arithmetic/climb", max_turns=2)
    trainer = trained(
        scripted_model(Turns(["up", "up"], ["down", "up"], ["x", "up"], ["up", "up"])),
        tmp_path,
        kind=WithLogprobs,
        train_dataset=make_trl_dataset("arithmetic/climb", indices=[1], identity_in_prompt=True),
        reward_funcs=rollout.reward,
        rollout_func=rollout,
    )
    given = trainer.batches[0]["sampling_per_token_logps"][0].tolist()
    mask = trainer.rows()[0]["mask"]
    assert [value for value, bit in zip(given, mask, strict=False) if bit] == [-0.5, -1.5, -2.5] * 2
    assert all(value == 0.0 for value, bit in zip(given, mask, strict=False) if not bit)


def test_templates_that_drop_thoughts(tmp_path: Path) -> None:
    """Qwen3's own loses the thought of an earlier turn, TRL's training version and a renderer keep it."""
    tokenizer = qwen3()
    kept = get_training_chat_template(tokenizer)
    chat = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "<think>\na\n</think>\n\nup"},
        {"role": "user", "content": "no"},
    ]
    assert "<think>\na\n" not in tokenizer.apply_chat_template(chat, tokenize=False)
    assert "<think>\na\n" in tokenizer.apply_chat_template(chat, tokenize=False, chat_template=kept)

    def masks(**options: Any) -> list[list[int]]:
        rollout = make_trl_rollout_fn("arithmetic/climb", max_turns=2, **options)
        said = ["<think>\na\n</think>\n\nup", "<think>\nb\n</think>\n\nup"]
        trainer = trained(
            scripted_model(Turns(said, said, said, said)),
            tmp_path,
            tokenizer=qwen3(),
            train_dataset=make_trl_dataset("arithmetic/climb", indices=[0], identity_in_prompt=True),
            reward_funcs=rollout.reward,
            rollout_func=rollout,
        )
        row = trainer.rows()[0]
        texts = [toy_tokenizer().decode([t]) for t in row["ids"]]
        sampled = "".join(text for text, bit in zip(texts, row["mask"], strict=True) if bit)
        assert sampled == "".join(f"{text}<|im_end|>" for text in said)
        return [row["ids"], row["mask"]]

    with pytest.raises(PrefixBreak, match="turn 1"):
        masks()
    by_template = masks(chat_template=kept)
    renderers = pytest.importorskip("renderers", reason="needs renderers")
    settings = {"enable_thinking": True}
    keeping = renderers.create_renderer(
        qwen3(), renderers.Qwen3RendererConfig(thinking_retention="all", **settings)
    )
    assert masks(renderer=keeping) == by_template
    dropping = renderers.create_renderer(qwen3(), renderers.Qwen3RendererConfig(**settings))
    new = [{"role": "user", "content": "no"}]
    prompt = tokenizer.apply_chat_template(chat[:1], add_generation_prompt=True)["input_ids"]
    cut = tokenizer("ok").input_ids
    assert dropping.bridge_to_next_turn(prompt, [*cut, 266], new) is None
    bridge = keeping.bridge_to_next_turn(prompt, cut, new).token_ids
    assert bridge[: len(prompt) + len(cut) + 1] == [*prompt, *cut, 266]  # a turn that was cut is closed


def test_prompts_and_templates_that_a_rollout_cannot_take(tmp_path: Path) -> None:
    rollout = make_trl_rollout_fn("arithmetic/climb")
    common = {"reward_funcs": rollout.reward, "rollout_func": rollout}
    with pytest.raises(InvalidOption, match="identity_in_prompt=True"):
        trained(
            scripted_model(Turns(["x"])), tmp_path, train_dataset=make_trl_dataset("arithmetic/climb"), **common
        )
    dropping = toy_tokenizer().chat_template.replace(
        "message['content'] + '<|im_end|>' }}{% endgen",
        "(message['content'] if loop.last else 'gone') + '<|im_end|>' }}{% endgen",
    )
    dataset = make_trl_dataset("arithmetic/climb", identity_in_prompt=True)
    with pytest.raises(PrefixBreak, match="turn 1"):
        trained(
            scripted_model(Turns(["up", "up"])),
            tmp_path,
            tokenizer=toy_tokenizer(dropping),
            train_dataset=dataset,
            **common,
        )
    with pytest.raises(InvalidOption, match="reward_funcs=rollout"):
        rollout.reward(["?"], ["up"])


def test_what_trl_would_take_without_a_word_is_refused() -> None:
    from llenvs.integrations.episode import Episode
    from llenvs.integrations.scorer_pool import ScorerPool

    limits = _Limits(10, 100, frozenset({266}))

    def running(ids: list[int], mask: list[int], logprobs: list[float | None] | None = None) -> _Running:
        episode = Episode(ScorerPool("arithmetic/climb"), {"task_index": 0})
        episode.begin()
        return _Running(episode, (), (1,), ids, mask, logprobs)

    good = running([1, 2], [1, 1])
    assert _checked([good], 1, limits)["env_mask"] == [[1, 1]]
    for wrong in (
        running([1, 2], [1]),
        running([], []),
        running([1, 2], [0, 0]),
        running([1, 2], [1, 0]),
        running([1] * 11, [1] * 11),
        running([1, 2], [1, 1], [0.0]),
    ):
        with pytest.raises(RolloutInvalid):
            _checked([wrong], 1, limits)
    with pytest.raises(RolloutInvalid):
        _checked([good], 2, limits)
    with pytest.raises(RolloutInvalid):
        _checked([good, running([1, 2], [1, 1], [0.0, 0.0])], 2, limits)


def _example() -> Any:
    """The module of the documentation's example."""
    import importlib.util

    path = Path(__file__).parents[3] / "examples" / "training_curve.py"
    spec = importlib.util.spec_from_file_location("training_curve", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_sampled_episodes_are_scored_as_the_scorer_scores_them(tmp_path: Path) -> None:
    """A model that samples for itself: what the masks cover are its actions, and they earn what was logged."""
    example = _example()
    env, tokens = example.Line(), example.tokenizer()
    rollout = make_trl_rollout_fn(env)
    given: list[Any] = []

    def watched(prompts: Any, completions: Any, **columns: Any) -> Any:
        given.append(rollout.reward(prompts, completions, **columns))
        return given[-1]

    trainer = trained(
        example.model(0, tokens),
        tmp_path,
        tokenizer=tokens,
        config={
            "per_device_train_batch_size": 16,
            "num_generations": 8,
            "max_steps": 3,
            "max_completion_length": 64,
        },
        train_dataset=make_trl_dataset(env, identity_in_prompt=True),
        reward_funcs=watched,
        rollout_func=rollout,
    )
    scorer = Scorer(env)
    prompts = {item.prompt: item.task_index for item in DatasetProvider(env)}
    assert len(prompts) == len(env)
    assert len(given) == 3
    turns = 0
    for batch, rewards in enumerate(given):
        for number, (row, reward) in enumerate(zip(trainer.rows(batch), rewards, strict=True)):
            actions: list[list[int]] = []
            before = 0
            for token, bit in zip(row["ids"], row["mask"], strict=True):
                if bit and not before:
                    actions.append([])
                if bit:
                    actions[-1].append(token)
                before = bit
            shown = tokens.decode(trainer.batches[batch]["prompt_ids"][number], skip_special_tokens=True)
            told = [tokens.decode(action, skip_special_tokens=True) for action in actions]
            assert scorer.score(prompts[shown], told).reward == pytest.approx(reward)
            turns += len(told)
    assert turns > 48
    history = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["reward"] for entry in history] == pytest.approx([sum(each) / 16 for each in given])


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    """Two steps of it: the curve itself takes some dozens."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    example = _example()
    env = example.Line()
    scorer = Scorer(env)
    assert scorer.score(0, ["e"]).reward == 1.0  # from 0 to 1
    away = scorer.score(1, ["e", "w", "x", "e"])  # from 0 to 2
    assert (away.reward, away.correct) == (0.5, False)
    read: dict[str, int] = {}  # what is said in a task is said in no other
    for task_index in range(len(env)):
        states = [env.reset(options={"task_index": task_index})[0]]
        for _ in range(5):  # at the start and after each of four steps
            for state in states:
                assert read.setdefault(state.observation.prompt, task_index) == task_index
            going = [state for state in states if not state.is_terminal]
            states = [env.step(state, Action(word)).next_state for state in going for word in ("e", "w")]
    assert len(read) > 2 * len(env)
    rewards, before, after = example.train(2, 0, 3e-3, str(tmp_path / "run"))
    assert len(rewards) == 2
    assert all(abs(each) < 0.5 for each in (*rewards, before, after))
    example.draw(rewards, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().count("<svg") == 1
