"""The simulator: a game whose fields are taken out after each step."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import InvalidAction
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import Frame, Simulator, Snapshots
from llenvs_gem.catalogue import Entry
from llenvs_gem.corpus import Words
from llenvs_gem.games import BadFields, Game
from llenvs_gem.options import GameOptions
from llenvs_gem.snapshot import BadSnapshot, pack, pack_fixed, split, unpack_fixed, unpack_moving

_FORMAT_ERROR = -0.1  # the upstream's reward for an action that it cannot read, and for nothing else
_WON = "Congratulations!"  # begins the last observation of a game that was won, in all twelve
_LONG_NUMBER = re.compile(r"\d{1000,}")  # Python refuses to read 4300 digits, and some games do not expect that


class GemSimulator(Simulator):
    """One game, played from task to task."""

    snapshots: ClassVar[Snapshots] = Snapshots.PORTABLE

    def __init__(self, entry: Entry, words: Words | None, options: GameOptions) -> None:
        self._name = f"gem/{entry.id}"
        self._game = Game(entry, words)
        self._options = options
        self._fixed = b""  # as packed, of the episode that the game stands in
        self._shown: list[str] = []  # for full prompts

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`; task i is the board of the upstream's seed ``options.seed + i``."""
        text, info = self._game.start(self._options.seed + task_index)
        self._fixed = pack_fixed(self._game.fixed())
        self._shown = []
        return Frame(self._observation(text, info), info=info, truth={"won": False})

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        text = action.text
        if len(text) >= 1000:
            text = _LONG_NUMBER.sub(lambda digits: digits[0][:999], text)
        shown, reward, terminated, truncated, info = self._game.act(text)
        unread = terminated and reward == _FORMAT_ERROR
        if unread and self._options.invalid_action == "continue":
            terminated = truncated  # the turn is used, and no more
        won = bool(terminated and not unread and shown.startswith(_WON))
        return Frame(
            self._observation(shown, info),
            (Signal("reward", RewardType.STEP, reward),),
            terminated=bool(terminated),
            truncated=bool(truncated),
            info=info,
            truth={"won": won},
        )

    def save(self) -> bytes:
        """See `Simulator`."""
        return pack(self._fixed, [self._game.moving(), self._shown])

    def restore(self, snapshot: bytes, task_index: int, seed: int) -> None:
        """See `Simulator`.

        Raises:
            InvalidAction: it is no snapshot of this game, or a damaged one.
        """
        try:
            fixed, rest = split(snapshot)
            if fixed != self._fixed:
                self._fixed = b""
                self._game.put_fixed(unpack_fixed(fixed))
                self._fixed = fixed
            moving, shown = _two(unpack_moving(rest))
            self._game.put_moving(moving)
        except (BadSnapshot, BadFields) as error:
            raise InvalidAction(f"{self._name}: this state cannot be stepped: {error}") from None
        self._shown = shown

    def _observation(self, text: str, info: dict[str, Any]) -> Observation:
        if self._options.prompt == "event":
            return Observation(text)
        before = ""
        if self._options.prompt == "full":
            self._shown = [*self._shown, text]
            before, text = "".join(map(_line, self._shown[:-1])), self._shown[-1]
        return Observation(before + _line(text) + info.get("suffix", ""))


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _two(values: Any) -> tuple[Any, list[str]]:
    match values:
        case [moving, list(shown)] if all(isinstance(each, str) for each in shown):
            return moving, shown
    raise BadSnapshot("this snapshot is damaged")
