"""Observations of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.message import ImageContent
from llenvs.core.observation import Observation
from llenvs_craftax.game import Game
from llenvs_craftax.images import png
from llenvs_craftax.instructions import instructions
from llenvs_craftax.judging import achieved
from llenvs_craftax.live import LiveState
from llenvs_craftax.options import CraftaxOptions
from llenvs_craftax.scene import scene
from llenvs_craftax.symbols import as_json
from llenvs_craftax.variants import ObservationMode
from llenvs_craftax.wording import describe, words

_ENDED = {
    "died": "You have died.",
    "lava": "You have stepped into lava and died.",
    "won": "You have beaten the necromancer and won.",
    "time": "Time is up.",
}


class Presenter:
    """Makes observations as the options say."""

    def __init__(self, game: Game, mode: ObservationMode, options: CraftaxOptions) -> None:
        self._game, self._mode, self._options = game, mode, options
        self._task = (
            instructions(game.upstream, mode, max_actions=options.max_actions, action_repeat=options.action_repeat)
            if options.instructions
            else None
        )

    def observation(
        self,
        live: LiveState,
        record: Any,
        *,
        problem: str = "",
        unlocked: Sequence[str] = (),
        ending: str | None = None,
    ) -> Observation:
        """The observation of a state.

        Args:
            live: the state.
            record: the same by names.
            problem: why the last response was no action; empty when it was one.
            unlocked: achievements of the step that led here.
            ending: why the game ended here; None when it goes on.
        """
        lines = []
        if problem:
            lines.append(self._refusal(problem))
        if ending is not None:
            lines.append(_ENDED[ending])
        if self._options.show_achievements:
            lines += self._achievements(record, unlocked)
        if self._mode == "pixels":
            image = ImageContent(png(self._game.draw(live.row, self._options.tile_size)))
            if record["is_sleeping"]:
                lines.append("You are asleep: until that ends, every action is a noop.")
            return Observation("\n".join(lines or ["This is what you see."]), self._task, images=(image,))
        seen = scene(self._game.upstream, record)
        shown = {"show_position": self._options.show_position, "mob_health": self._options.show_mob_health}
        if self._mode == "symbolic":
            lines.append(as_json(seen, **shown))
        else:
            lines.append(describe(seen, show_map=self._options.show_map, **shown))
        return Observation("\n".join(lines), self._task)

    def _refusal(self, problem: str) -> str:
        text = self._options.invalid_action_text
        stop = "" if problem.endswith("?") else "."
        said = f"{problem[:1].upper()}{problem[1:]}{stop} Actions: {', '.join(self._game.upstream.actions)}."
        return said if text is None else f"{text} {said}"

    def _achievements(self, record: Any, unlocked: Sequence[str]) -> list[str]:
        lines = [f"New achievement: {words(name)}." for name in unlocked]
        so_far = ", ".join(words(name) for name in achieved(self._game.upstream, record))
        return [*lines, f"Achievements so far: {so_far or 'none'}."]
