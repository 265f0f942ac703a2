"""The simulator: a game in an engine process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import InvalidAction, UpstreamFailed
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import EngineProcess, Frame, Simulator, Snapshots
from llenvs_jericho.commands import clean
from llenvs_jericho.options import JerichoOptions
from llenvs_jericho.story import Story

_LARGEST_SEED = (1 << 31) - 1


class JerichoSimulator(Simulator):
    """One engine process, which plays any of the stories.

    `facts` holds what is known of each story, by its path; the simulators of an environment share it.
    """

    snapshots: ClassVar[Snapshots] = Snapshots.PORTABLE

    def __init__(
        self, name: str, stories: Sequence[Story], options: JerichoOptions, facts: dict[str, dict[str, Any]]
    ) -> None:
        self._name, self._stories, self._options, self._facts = name, stories, options, facts
        self._weight = 1.0 if options.reward == "score_gained" else 0.0
        self._process = start_engine(name, options)
        self._story = stories[0]
        self._snapshot = b""
        self._elsewhere = False  # whether the engine has yet to go to the snapshot

    @property
    def alive(self) -> bool:
        """See `Simulator`."""
        return self._process.alive

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        self._story = self._stories[task_index]
        self._learn()
        request = {"do": "start", "story": str(self._story.path), "seed": engine_seed(seed)}
        return self._frame(*self._ask(request, b"", f"starting {self._story.name}"), None)

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        command = clean(action.text)
        understood = Action(command)
        request: dict[str, Any] = {"do": "act", "command": command}
        payload = b""
        if self._elsewhere:
            self._learn()
            request["story"], payload = str(self._story.path), self._snapshot
        return self._frame(*self._ask(request, payload, f"taking the action {command!r}"), understood)

    def save(self) -> bytes:
        """See `Simulator`."""
        return self._snapshot

    def restore(self, snapshot: bytes, task_index: int, seed: int) -> None:
        """See `Simulator`; the engine is told together with the next action."""
        self._story, self._snapshot, self._elsewhere = self._stories[task_index], snapshot, True

    def close(self) -> None:
        """End the engine process."""
        self._process.close()

    def _ask(self, request: dict[str, Any], payload: bytes, doing: str) -> tuple[dict[str, Any], bytes]:
        answer, snapshot = self._process.request(request, payload, limit=self._options.time_limit, doing=doing)
        if "refused" in answer:
            raise InvalidAction(f"{self._name}: {answer['refused']}")
        if "halted" in answer:
            raise UpstreamFailed(self._name, doing, "the game's emulator halted")
        return answer, snapshot

    def _frame(self, answer: dict[str, Any], snapshot: bytes, understood: Action | None) -> Frame:
        self._snapshot, self._elsewhere = snapshot, False
        text = answer["text"]
        info = {name: answer[name] for name in ("score", "moves", "location")}
        for name in ("inventory", "valid_actions"):
            if name in answer:
                info[name] = answer[name]
        if self._options.valid_actions == "prompt" and "valid_actions" in answer:
            text = f"{text.rstrip()}\n\nValid actions: {', '.join(answer['valid_actions'])}"
        truth = {
            "score": answer["score"],
            "max_score": self._facts[str(self._story.path)]["max_score"],
            "moves": answer["moves"],
            "ending": self._ending(answer),
        }
        return Frame(
            Observation(text),
            (self._gained(answer["gained"]),),
            terminated=answer["ending"] is not None,
            resolved_action=understood,
            info=info,
            truth=truth,
        )

    def _ending(self, answer: dict[str, Any]) -> str | None:
        """As the engine says; a game that asks whether to restart, with all its points made, was won."""
        most = self._facts[str(self._story.path)]["max_score"]
        won = answer["ending"] == "over" and most is not None and (answer["score"] or 0) >= most
        return "won" if won else answer["ending"]

    def _learn(self) -> None:
        """Ask once what the engine and the game say of the story; the engine then stands somewhere else."""
        path = str(self._story.path)
        if path not in self._facts:
            facts, _ = self._ask({"do": "describe", "story": path}, b"", f"loading {self._story.name}")
            if self._options.max_score is not None:
                facts["max_score"] = self._options.max_score
            self._facts[path] = facts

    def _gained(self, points: int) -> Signal:
        return Signal("score_gained", RewardType.STEP, float(points), None, self._weight)


def start_engine(name: str, options: JerichoOptions) -> EngineProcess:
    """An engine process for `options`."""
    arguments = {
        "status_line": options.status_line,
        "inventory": options.inventory,
        "valid_actions": options.valid_actions != "none",
    }
    return EngineProcess("llenvs_jericho.engine:engine", arguments, name=name)


def engine_seed(seed: int) -> int:
    """`seed` as the engine takes it: itself from 0 to 2**31 - 1, any other one in that range."""
    return seed if 0 <= seed <= _LARGEST_SEED else seed % _LARGEST_SEED + 1
