"""An environment that holds every kind of data, and does as it is told: fail, hang, print, die."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from llenvs.core.action import Action
from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start
from llenvs.core.errors import LLEnvsError, UpstreamFailed
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.observation import Observation
from llenvs.core.options import EnvironmentOptions
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.state import State
from llenvs.core.tools import ToolDefinition, ToolResult

TOOL = ToolDefinition(
    "say", "Says it.", {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)


class ProbeTrouble(UpstreamFailed):
    """An error class of an adapter, which a client may not know."""

    def __init__(self, code: int) -> None:
        self.code = code
        LLEnvsError.__init__(self, f"trouble number {code}")


class ProbeOptions(EnvironmentOptions):
    """Options of the probe."""

    size: int = 5
    max_steps: int = 4
    ballast: int = 0


class ProbeEnvironment(Environment[dict[str, Any]]):
    """Task i hides the number ``7 * i + seed``; saying it ends the episode."""

    reset_options = ("task_index", "mood")

    def __init__(self, options: ProbeOptions) -> None:
        spec = EnvironmentSpec(
            "probe",
            "probe",
            max_steps=options.max_steps,
            is_multi_turn=True,
            supports_tools=True,
            supports_images=True,
            success_signal="found",
            description="a probe",
            metadata={"versions": ("1.0", 2)},
        )
        super().__init__(spec, reward_functions=make_reward_functions(options.extra_rewards))
        self._options = options

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self._options.size

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """One tool."""
        return (TOOL,)

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        hidden = {
            "number": 7 * task_index + seed,
            "said": (),
            "letters": {"a", "b"},
            "raw": b"\x00\xff",
            "table": {(1, 2): [Fraction(1, 3), None]},
            "when": dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
            "nan": float("nan"),
            "ballast": "x" * self._options.ballast,
        }
        task = f"Guess my number ({options.get('mood', 'calm')})."
        observation = Observation(
            "Your guess?",
            task=task,
            messages=(ChatMessage.system("You guess."), ChatMessage.user(task)),
            images=(ImageContent(PIXEL),),
            available_tools=(TOOL,),
        )
        return Start(observation, hidden, {"mood": options.get("mood", "calm")})

    def _advance(self, state: State[dict[str, Any]], action: Action) -> Advance:
        self._obey(action.text)
        results = tuple(
            ToolResult(call.id, str(call.arguments.get("words")), name=call.name) for call in action.tool_calls
        )
        if action.text == "same":
            return Advance(Observation("Again?"), state.hidden)
        hidden = {**state.hidden, "said": (*state.hidden["said"], action.text)}
        found = action.text == str(state.hidden["number"])
        return Advance(
            Observation("Yes!" if found else "No. Your guess?", tool_results=results, available_tools=(TOOL,)),
            hidden,
            terminated=found,
            resolved_action=Action(action.text.strip()) if action.text else None,
            info={"guesses": len(hidden["said"])},
        )

    def _signals(
        self, state: State[dict[str, Any]], action: Action, next_state: State[dict[str, Any]]
    ) -> Iterable[Signal]:
        found = action.text == str(state.hidden["number"])
        yield Signal("found", RewardType.OUTCOME, float(found), None if found else "not that one")
        yield Signal("words", RewardType.PROCESS, None, f"{len(action.text)} characters", 0.5, {"kind": ("a", 1)})

    @staticmethod
    def _obey(command: str) -> None:
        word, _, argument = command.partition(" ")
        if word == "raise":
            raise ValueError(argument)
        if word == "trouble":
            raise ProbeTrouble(int(argument))
        if word == "exit":
            sys.exit(3)
        if word == "die":
            os._exit(9)
        if word == "sleep":
            time.sleep(float(argument))
        if word == "print":
            print('{"id": 1, "ok": "printed by the adapter"}', flush=True)  # noqa: T201
            os.write(1, b"raw bytes on stdout\n")


class ProbeAdapter(Adapter):
    """Brings the probe."""

    name = "probe"
    options = ProbeOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """One environment."""
        return [EnvironmentInfo("probe", "probe", "a probe", is_multi_turn=True)]

    def create(self, name: str, options: Any) -> Environment[Any]:
        """The environment."""
        return ProbeEnvironment(options)
