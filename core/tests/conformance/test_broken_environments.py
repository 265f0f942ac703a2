"""The kit finds the fault: environments with one fault each, and the one check that must complain."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from llenvs import Action, Environment, EnvironmentSpec, Observation, Signal, SignalBundle, State
from llenvs.core import ToolDefinition
from llenvs.core.environment import Advance, Start
from llenvs.core.message import ChatMessage
from llenvs.testing import ConformanceFailed, check_environment, no_secrets

ANIMALS = ("dog", "hen", "ant", "cow", "spider", "snail", "crab")
LEGS = (4, 2, 6, 4, 8, 0, 10)


class Legs(Environment[Any]):
    """A good environment of one turn."""

    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__(EnvironmentSpec("legs", "kit", success_signal="score", **self.settings))

    @property
    def num_tasks(self) -> int:
        return len(ANIMALS)

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"How many legs has a {ANIMALS[task_index]}?"), {"answer": LEGS[task_index]})

    def _advance(self, state: State[Any], action: Action) -> Advance:
        return Advance(Observation(), state.hidden, terminated=True, info={"heard": action.text[:20]})

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        return [Signal("score", reward=float(action.text == str(state.hidden["answer"])))]


class Guess(Environment[Any]):
    """A good environment of several turns: guess the number."""

    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        given = {"max_steps": 5, "is_multi_turn": True, "success_signal": "found", **self.settings}
        super().__init__(EnvironmentSpec("guess", "kit", **given))

    @property
    def num_tasks(self) -> int:
        return 20

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        target = random.Random(seed * 1000 + task_index).randrange(100)
        return Start(Observation("Guess my number from 0 to 99."), {"target": target, "guesses": ()})

    def _advance(self, state: State[Any], action: Action) -> Advance:
        hidden = {**state.hidden, "guesses": (*state.hidden["guesses"], action.text)}
        try:
            guess = int(action.text)
        except ValueError:
            return Advance(Observation("That is no number."), hidden)
        if guess == state.hidden["target"]:
            return Advance(Observation("Yes!"), hidden, terminated=True)
        return Advance(Observation("Too low." if guess < state.hidden["target"] else "Too high."), hidden)

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        found = next_state.is_terminal and action.text == str(state.hidden["target"])
        return [Signal("found", reward=float(found))]


def guesses(state: State[Any], rng: random.Random) -> str:
    """Now and then right, so that some episodes end."""
    return str(state.hidden["target"]) if rng.random() < 0.4 else rng.choice(("50", "many", "0", "99"))


# -- the faults -------------------------------------------------------------------------------------------


class FactoryOfSomethingElse:
    """No environment at all."""


class WrongLength(Legs):
    def __len__(self) -> int:
        return 99


class NoSeedInInfo(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        state, info = super().reset(seed=seed, options=options)
        return state, {"task_index": info["task_index"]}


class NegativeIndices(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if options and options.get("task_index") == -1:
            options = {"task_index": len(ANIMALS) - 1}
        return super().reset(seed=seed, options=options)


class WrapsAround(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        index = (options or {}).get("task_index")
        if type(index) is int and index >= 0:
            options = {"task_index": index % len(ANIMALS)}
        return super().reset(seed=seed, options=options)


class TrueIsATask(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if options and options.get("task_index") is True:
            options = {"task_index": 1}
        return super().reset(seed=seed, options=options)


class AnyResetOption(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        known = {k: v for k, v in (options or {}).items() if k == "task_index"}
        return super().reset(seed=seed, options=known)


class RandomTask(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        return replace(start, hidden={**start.hidden, "salt": random.random()})


class RandomSeed(Legs):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if type(seed) is int and not options:
            seed = random.SystemRandom().randrange(10**9)
        return super().reset(seed=seed, options=options)


class Raises(Legs):
    def _advance(self, state: State[Any], action: Action) -> Advance:
        return Advance(Observation(), state.hidden["no such key"])


class NoCounting(Guess):
    def step(self, state: Any, action: Any) -> Any:
        result = super().step(state, action)
        metadata = replace(result.next_state.metadata, step=0)
        return replace(result, next_state=replace(result.next_state, metadata=metadata))


class NeverEnds(Guess):
    settings: ClassVar = {"max_steps": 2}

    def step(self, state: Any, action: Any) -> Any:
        result = super().step(state, action)
        if result.terminated:
            return result
        metadata = replace(result.next_state.metadata, is_terminal=False)
        return replace(result, truncated=False, next_state=replace(result.next_state, metadata=metadata))


class ObjectInHidden(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        return replace(start, hidden={**start.hidden, "upstream": FactoryOfSomethingElse()})


class ChangesItsState(Guess):
    def _advance(self, state: State[Any], action: Action) -> Advance:
        state.hidden["last"] = action.text[:10]
        return super()._advance(state, action)


class Coin(Guess):
    def _advance(self, state: State[Any], action: Action) -> Advance:
        advance = super()._advance(state, action)
        return replace(advance, info={"coin": random.random()})


class OnlyForward(Guess):
    """Keeps where the newest episode stands, as a stateful upstream does, and goes on from there."""

    _last = ""

    def _advance(self, state: State[Any], action: Action) -> Advance:
        now = f"{state.metadata.episode_id} {state.metadata.step}"
        last, self._last = self._last, now
        fresh = last.rpartition(" ")[0] == state.metadata.episode_id or state.metadata.step == 0
        advance = super()._advance(state, action)
        return advance if fresh else replace(advance, info={"note": "lost"})


class SharedScratch(Guess):
    """Works through an attribute, so that two threads meet in it."""

    def _advance(self, state: State[Any], action: Action) -> Advance:
        self._now = (state, action)
        time.sleep(0.002)
        return super()._advance(*self._now)


class OtherWhenAsync(Guess):
    async def astep(self, state: Any, action: Any) -> Any:
        result = await super().astep(state, action)
        return replace(result, info={"asynchronous": True})


class KnowsItsObjects(Guess):
    """Looks states up by identity."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, Any] = {}

    def _remember(self, state: Any) -> None:
        self._known[id(state.hidden)] = state.hidden  # held, so the id is not used again

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        state, info = super().reset(seed=seed, options=options)
        self._remember(state)
        return state, info

    def step(self, state: Any, action: Any) -> Any:
        result = super().step(state, action)
        if isinstance(state, State):
            self._remember(result.next_state)
            if id(state.hidden) not in self._known:
                return replace(result, info={"unknown": True})
        return result


class AnswersInTheEnvironment(Legs):
    """The truth is in the environment that began the episode, not in the state."""

    def __init__(self) -> None:
        super().__init__()
        self._began: set[str] = set()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        self._began.add(f"{self.spec.id}#{task_index}@{seed}")
        return super()._start(task_index, seed, options)

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        known = state.metadata.episode_id in self._began
        return super()._signals(state, action, next_state) if known else [Signal("score", reward=None)]


class StepsTheDead(Legs):
    def step(self, state: Any, action: Any) -> Any:
        if isinstance(state, State) and state.is_terminal:
            state = replace(state, metadata=replace(state.metadata, is_terminal=False))
        return super().step(state, action)


class TakesText(Legs):
    def step(self, state: Any, action: Any) -> Any:
        return super().step(state, Action(action) if isinstance(action, str) else action)


class ChokesOnOddText(Legs):
    def _advance(self, state: State[Any], action: Action) -> Advance:
        action.text.encode("ascii")
        return super()._advance(state, action)


class NaNReward(Legs):
    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        return [Signal("score", reward=float("nan"))]


class ChangingNames(Legs):
    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        extra = [Signal("bonus", reward=1.0)] if state.hidden["answer"] == 4 else []
        return [*super()._signals(state, action, next_state), *extra]


class OtherWhenRecomputed(Legs):
    def step(self, state: Any, action: Any) -> Any:
        result = super().step(state, action)
        return replace(result, rewards=SignalBundle((Signal("score", reward=0.5),)))


class NoSuccessSignal(Legs):
    settings: ClassVar = {"success_threshold": 1.0}

    def _signals(self, state: State[Any], action: Action, next_state: State[Any]) -> list[Signal]:
        return [Signal("points", reward=1.0)]


class UndeclaredTools(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        return replace(start, observation=replace(start.observation, available_tools=(ToolDefinition("count"),)))


class SaysOneTurn(Guess):
    settings: ClassVar = {"is_multi_turn": False}


class LeakAtTheEnd(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        return replace(start, observation=Observation(f"{start.observation.prompt} {start.hidden['answer']}"))


class LeakBesideItsKey(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        messages = (ChatMessage.system(f"Item: Answer: {start.hidden['answer']} (do not tell)"),)
        return replace(start, observation=replace(start.observation, messages=messages))


class LeakInPassing(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        hint = f"The hint for this one is {start.hidden['answer']}, keep it to yourself."
        return replace(start, observation=Observation(f"{hint} {start.observation.prompt}"))


class LeakByDump(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        return replace(start, observation=replace(start.observation, task=f"Debug {start.hidden!r} end"))


class LeakByReference(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        messages = (ChatMessage("user", start.observation.prompt, metadata=start.hidden),)
        return replace(start, observation=replace(start.observation, messages=messages))


class Prints(Legs):
    def _advance(self, state: State[Any], action: Action) -> Advance:
        print("scoring")  # noqa: T201
        return super()._advance(state, action)


class PrintsFromBelow(Legs):
    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        os.write(1, b"loading upstream\n")
        return super()._start(task_index, seed, options)


class ClosesOnce(Legs):
    _closed = False

    def close(self) -> None:
        if self._closed:
            raise RuntimeError("already closed")
        self._closed = True


FAULTS: list[tuple[Any, str, str]] = [
    (FactoryOfSomethingElse, "create", "no llenvs.Environment"),
    (WrongLength, "reset", "len(env) is 99, but num_tasks is 7"),
    (NoSeedInInfo, "reset", "info['seed'] must be an int"),
    (NegativeIndices, "task_index", "task_index -1 must raise TaskIndexOutOfRange, but was accepted"),
    (WrapsAround, "task_index", "task_index 7 must raise TaskIndexOutOfRange"),
    (TrueIsATask, "task_index", "task_index True must raise InvalidOption"),
    (AnyResetOption, "reset_options", "'task_indx' must raise UnknownOption, but was accepted"),
    (Raises, "episode", "raised KeyError"),
    (NoCounting, "bookkeeping", "metadata.step is 0"),
    (NeverEnds, "bookkeeping", "goes on although spec.max_steps is 2"),
    (ObjectInHidden, "encoding", "value.hidden.upstream"),
    (RandomTask, "reset_by_task", "hidden.salt"),
    (RandomSeed, "reset_by_seed", "reset(seed=0) twice differs"),
    (ChangesItsState, "step_pure", "changed the state that it was given: hidden.last"),
    (Coin, "step_repeatable", "info.coin"),
    (OnlyForward, "old_states", "taken after newer ones differs"),
    (SharedScratch, "threads", "taken by one of several threads differs"),
    (OtherWhenAsync, "async_twins", "asynchronous"),
    (KnowsItsObjects, "json_round_trip", "after a JSON round trip of its state in info"),
    (AnswersInTheEnvironment, "second_instance", "in a second environment in rewards"),
    (StepsTheDead, "terminal_states", "must raise EpisodeOver, but it gave a result"),
    (TakesText, "wrong_arguments", "a str for an Action must raise InvalidAction, but was accepted"),
    (ChokesOnOddText, "odd_actions", "UnicodeEncodeError"),
    (NaNReward, "signals", "reward is nan"),
    (ChangingNames, "signals", "has bonus, score"),
    (OtherWhenRecomputed, "rewards_recomputed", "step() and compute_rewards() differ"),
    (NoSuccessSignal, "success", "'score', but the signals at the end are: points"),
    (UndeclaredTools, "spec", "tools: count"),
    (SaysOneTurn, "spec", "is_multi_turn is False"),
    (LeakAtTheEnd, "hidden_stays_hidden", "prompt shows the answer as first or last words"),
    (LeakBesideItsKey, "hidden_stays_hidden", "messages[0].content shows the answer beside its key"),
    (LeakInPassing, "hidden_stays_hidden", "prompt shows the answer in words that tell it"),
    (LeakByDump, "hidden_stays_hidden", "task shows a dump of the hidden state"),
    (LeakByReference, "hidden_stays_hidden", "refers to the very object"),
    (Prints, "quiet", "'scoring\\n"),
    (PrintsFromBelow, "quiet", "loading upstream"),
    (ClosesOnce, "close_twice", "the second close() raised RuntimeError: already closed"),
]


@pytest.mark.parametrize(("broken", "check", "text"), FAULTS, ids=[f"{b.__name__}" for b, _, _ in FAULTS])
def test_one_fault_is_found_by_one_check(broken: Any, check: str, text: str) -> None:
    policy = guesses if issubclass(broken, Guess) else None
    report = check_environment(lambda: broken(), actions=policy, tasks=5, raise_on_violation=False)
    assert report.failed == (check,), str(report)
    assert any(text in violation for violation in report.violations), str(report)


def test_every_check_has_a_fault_that_it_finds() -> None:
    report = check_environment(Legs, raise_on_violation=False)
    elsewhere = {"second_process", "unknown_options"}  # need an address: test_by_address
    assert {o.check for o in report.outcomes} - {check for _, check, _ in FAULTS} == elsewhere


@pytest.mark.parametrize(("good", "policy"), [(Legs, None), (Guess, guesses), (Guess, None)])
def test_good_environments_pass(good: Any, policy: Any) -> None:
    report = check_environment(lambda: good(), actions=policy, tasks=7)
    expected = {"second_process", "unknown_options"}
    if good is Guess and policy is None:
        expected.add("success")  # texts at random never find the number
    assert report.ok
    assert set(report.skipped) == expected, str(report)


def test_the_error_holds_the_report() -> None:
    with pytest.raises(ConformanceFailed, match="task_index -1 must raise") as caught:
        check_environment(NegativeIndices)
    assert caught.value.report.failed == ("task_index",)
    assert "FAIL  task_index: task_index picks a task" in str(caught.value)


def test_a_fault_hides_what_stands_on_it() -> None:
    report = check_environment(lambda: Raises(), raise_on_violation=False)
    assert report.skipped["threads"] == "not checked, because 'episode' fails"


def test_named_secrets_are_found_anywhere() -> None:
    class Mentions(Legs):
        def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
            start = super()._start(task_index, seed, options)
            return replace(
                start, observation=Observation(f"Not 3, but {start.hidden['answer']} are right, say so.")
            )

    def secrets(state: State[Any]) -> list[str]:
        return [str(state.hidden["answer"])]

    report = check_environment(lambda: Mentions(), secrets=secrets, raise_on_violation=False)
    assert report.failed == ("hidden_stays_hidden",)
    assert "prompt contains the secret '4'" in report.violations[0]


def test_answers_that_belong_to_the_question_are_no_leak() -> None:
    class Choice(Legs):
        """The options and a worked example hold the answer, as they must."""

        def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
            start = super()._start(task_index, seed, options)
            prompt = f"Example. Answer: 4. Answer: 8. {start.observation.prompt} One of 0, 2, 4, 6, 8, 10"
            return replace(start, observation=Observation(prompt))

    assert check_environment(lambda: Choice()).ok


def test_no_secrets_allows_an_echo_task() -> None:
    class Echo(Legs):
        def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
            return Start(Observation(f"Say {ANIMALS[task_index]}"), {"answer": ANIMALS[task_index]})

    assert not check_environment(lambda: Echo(), raise_on_violation=False).ok
    assert check_environment(lambda: Echo(), secrets=no_secrets).ok


def test_environments_that_declare_chance_are_not_asked_to_repeat() -> None:
    class FairCoin(Coin):
        settings: ClassVar = {"deterministic": False}

    report = check_environment(lambda: FairCoin(), actions=guesses)
    assert report.skipped["step_repeatable"] == "the spec says that steps are not deterministic"


def test_inside_a_running_loop() -> None:
    import asyncio

    async def inside() -> bool:
        return check_environment(Legs).ok

    assert asyncio.run(inside())


def test_the_environment_is_closed_afterwards() -> None:
    made: list[Any] = []
    lock = threading.Lock()

    class Counted(Legs):
        def __init__(self) -> None:
            super().__init__()
            self.open = True
            with lock:
                made.append(self)

        def close(self) -> None:
            self.open = False

    check_environment(lambda: Counted())
    assert made
    assert not any(env.open for env in made)
