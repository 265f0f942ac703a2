"""Playing: what `step` gives, counts and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import EncodingFailed, EpisodeOver, InvalidAction
from llenvs.core.observation import Observation
from llenvs.core.signals import SignalBundle
from llenvs.core.state import State
from llenvs.testing import actions as made_up
from llenvs.testing.check import check
from llenvs.testing.subject import Subject


@check("episodes can be played", needs=["reset"])
def episode(subject: Subject) -> Iterator[str]:
    """The walks that the other checks look at: no error, right types."""
    for step in subject.steps:
        result = step.result
        if not isinstance(result, StepResult):
            yield f"step() must give a StepResult, gave {type(result).__name__}"
            return
        if not isinstance(result.next_state, State) or not isinstance(result.next_state.observation, Observation):
            yield "StepResult.next_state must be a State with an Observation"
        if not isinstance(result.rewards, SignalBundle):
            yield f"StepResult.rewards must be a SignalBundle, is {type(result.rewards).__name__}"


@check("steps are counted, the episode keeps its id, its end is marked and within max_steps", needs=["episode"])
def bookkeeping(subject: Subject) -> Iterator[str]:
    """Metadata and flags along the walks."""
    limit = subject.environment.spec.max_steps
    for walk in subject.walks:
        for number, step in enumerate(walk.steps, 1):
            before, after = step.state.metadata, step.result.next_state.metadata
            where = f"task {walk.task_index}, step {number}"
            if after.step != number:
                yield f"{where}: metadata.step is {after.step}"
            if after.episode_id != before.episode_id:
                yield f"{where}: episode_id changed from {before.episode_id!r} to {after.episode_id!r}"
            if step.result.done is not after.is_terminal:
                yield f"{where}: done is {step.result.done}, but next_state.is_terminal is {after.is_terminal}"
            if limit is not None and number >= limit and not step.result.done:
                yield f"{where}: the episode goes on although spec.max_steps is {limit}"


@check("a terminal state refuses every action", needs=["episode"])
def terminal_states(subject: Subject) -> Iterator[str]:
    """States where episodes ended, and others marked as terminal."""
    env = subject.environment
    ends = [walk.states[-1] for walk in subject.walks if walk.states[-1].is_terminal]
    marked = [replace(w.initial, metadata=replace(w.initial.metadata, is_terminal=True)) for w in subject.walks]
    for state in [*ends, *marked[:1]]:
        try:
            env.step(state, Action("again"))
        except EpisodeOver:
            continue
        except Exception as error:  # noqa: BLE001 - the wrong error is the finding
            yield f"stepping a terminal state must raise EpisodeOver, raised {type(error).__name__}: {error}"
        else:
            yield "stepping a terminal state must raise EpisodeOver, but it gave a result"


@check("what is no Action and what is no State is refused", needs=["episode"])
def wrong_arguments(subject: Subject) -> Iterator[str]:
    """The two mistakes that everybody makes: a bare text, and the pair that reset gives."""
    env: Environment[Any] = subject.environment
    made = env.reset(seed=subject.seeds[0])
    for state, action, what in ((made[0], "text", "a str for an Action"), (made, Action("text"), "(state, info)")):
        try:
            env.step(state, action)  # type: ignore[arg-type]
        except InvalidAction:
            continue
        except Exception as error:  # noqa: BLE001 - the wrong error is the finding
            yield f"step with {what} must raise InvalidAction, raised {type(error).__name__}: {error}"
        else:
            yield f"step with {what} must raise InvalidAction, but was accepted"


@check("an action that makes no sense is answered, not an error", needs=["encoding"])
def odd_actions(subject: Subject) -> Iterator[str]:
    """Empty, huge, broken and foreign text; tools that do not exist; wrong arguments."""
    env = subject.environment
    state = subject.walks[0].initial
    for action in made_up.odd_actions(state):
        shown = repr(action) if len(repr(action)) < 120 else repr(action)[:117] + "..."
        try:
            env.step(state, action).next_state.to_json()
        except EncodingFailed as error:
            yield f"after {shown} the state has no JSON: {error}"
        except Exception as error:  # noqa: BLE001 - any error is the finding
            yield f"{shown} raised {type(error).__name__}: {error}"
