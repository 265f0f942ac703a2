"""The environments: one or several games, steppable from any state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version as distribution_version
from importlib.util import find_spec
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Advance, EnvironmentSpec
from llenvs.core.errors import InvalidOption, TaskIndexOutOfRange, UnknownEnvironment
from llenvs.core.observation import Observation
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden, Snapshots
from llenvs.core.state import State
from llenvs_jericho.catalogue import KnownGame, known_games
from llenvs_jericho.commands import clean, is_meta
from llenvs_jericho.options import JerichoOptions
from llenvs_jericho.simulator import JerichoSimulator
from llenvs_jericho.story import Story

BLOCKED = "[That command is about the program, not the game, and is not available here.]"
"""The observation after a meta command that is blocked."""


class JerichoEnvironment(SimulatorEnvironment):
    """Text games: task i is the i-th story, the seed decides all chance in it.

    Signals:
        score_gained: points gained (or lost) with this step; the reward, unless the option `reward` is another.
        score_share: with the last step of an episode, the final score as a share of all points, where these are
            known; negative for a negative score.
        victory: with the last step, 1.0 if the game was won, else 0.0; it decides success.

    The info of each state has `score`, `moves` and `location` (None where neither engine nor game tells them), and
    `inventory` and `valid_actions` if asked for.
    """

    def __init__(self, name: str, stories: Sequence[Story], options: JerichoOptions) -> None:
        _check_valid_actions(stories, options)
        spec = EnvironmentSpec(
            name,
            "jericho",
            max_steps=options.max_steps,
            is_multi_turn=True,
            success_signal="victory",
            description="text game" if len(stories) == 1 else f"{len(stories)} text games",
            metadata={
                "jericho": distribution_version("jericho"),
                "games": [{"name": s.name, "version": s.version, "sha256": s.sha256} for s in stories],
            },
        )
        facts: dict[str, dict[str, Any]] = {}
        super().__init__(
            spec,
            lambda: JerichoSimulator(spec.id, stories, options, facts),
            num_tasks=len(stories),
            snapshots=Snapshots.PORTABLE,
            limits=options.limits,
            reward_functions=make_reward_functions(options.extra_rewards),
        )
        self._stories = tuple(stories)
        self._blocks = options.meta_commands == "block"
        self._weight = 0.0 if options.reward == "score_gained" else 1.0

    @property
    def stories(self) -> tuple[Story, ...]:
        """The story files, one a task."""
        return self._stories

    def walkthrough(self, task_index: int = 0, *, like: str | None = None) -> tuple[int, tuple[str, ...]]:
        """The seed and the commands of the engine's walkthrough of a game; it holds for this seed alone.

        Args:
            task_index: which game.
            like: the name of a game that the engine knows, for another release of it (which it does not know).

        Raises:
            TaskIndexOutOfRange: there is no such task.
            UnknownEnvironment: the engine knows no walkthrough; names the games that it has one of.
        """
        if not 0 <= task_index < len(self._stories):
            raise TaskIndexOutOfRange(task_index, len(self._stories), self.spec.id)
        story = self._stories[task_index]
        found = _known(story) if like is None else known_games().get(like)
        if found is None or not found.walkthrough:
            having = [game.name for game in known_games().values() if game.walkthrough]
            hint = "the engine has no walkthrough of it; for another release of a known game give like=..."
            raise UnknownEnvironment(like or story.name, having, hint)
        return found.seed, found.walkthrough

    def _advance(self, state: State[SimulatorHidden], action: Action) -> Advance:
        command = clean(action.text)
        hidden = self._checked(state)
        version = self._stories[hidden["recipe"].task_index].version
        if self._blocks and is_meta(command, version):
            stayed: SimulatorHidden = {**hidden, "signals": tuple(_without_gain(s) for s in hidden["signals"])}
            return Advance(Observation(BLOCKED), stayed, resolved_action=Action(command))
        return super()._advance(state, action)

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        yield from next_state.hidden["signals"]
        if next_state.is_terminal:
            truth = next_state.hidden["truth"]
            if truth["max_score"] and truth["score"] is not None:
                share = truth["score"] / truth["max_score"]
                yield Signal("score_share", RewardType.OUTCOME, share, None, self._weight)
            won = 1.0 if truth["ending"] == "won" else 0.0
            yield Signal("victory", RewardType.OUTCOME, won, None, 0.0)


def _without_gain(signal: Signal) -> Signal:
    return Signal(signal.name, signal.reward_type, 0.0, None, signal.weight)


def _known(story: Story) -> KnownGame | None:
    """What the engine knows of this very file."""
    return next((game for game in known_games().values() if game.md5 == story.md5), None)


def _check_valid_actions(stories: Sequence[Story], options: JerichoOptions) -> None:
    if options.valid_actions == "none":
        return
    for story in stories:
        if _known(story) is None:
            problem = f"cannot be: the engine does not know {story.path.name} by its checksum"
            raise InvalidOption("valid_actions", options.valid_actions, problem, valid="none")
    for module, command in (
        ("spacy", 'pip install "llenvs-jericho[valid-actions]"'),
        ("en_core_web_sm", "python -m spacy download en_core_web_sm"),
    ):
        if find_spec(module) is None:
            problem = f"needs {module}, which is not installed; run: {command}"
            raise InvalidOption("valid_actions", options.valid_actions, problem)
