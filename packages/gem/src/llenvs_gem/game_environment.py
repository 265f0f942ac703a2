"""Games as environments: steppable from any state."""

from __future__ import annotations

from collections.abc import Iterable

from llenvs.core.action import Action
from llenvs.core.environment import EnvironmentSpec
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden, Snapshots
from llenvs.core.state import State
from llenvs_gem.catalogue import Entry
from llenvs_gem.corpus import Words, find_corpus
from llenvs_gem.options import GameOptions, WordGameOptions
from llenvs_gem.redirection import redirect
from llenvs_gem.simulator import GemSimulator
from llenvs_gem.upstream import version


class GemGameEnvironment(SimulatorEnvironment):
    """One game: task i is its board for the upstream's seed ``options.seed + i``.

    Signals:
        reward: the upstream's own of the step (STEP, weight 1).
        success: with the last step of an episode, 1.0 if the game was won, else 0.0 (weight 0); decides success.

    The upstream ends an episode with its last turn both as terminated and as truncated: the limit is part of the
    game, and both flags are handed on. The info of each state is the upstream's; `suffix` in it shows the board.
    """

    def __init__(self, entry: Entry, options: GameOptions) -> None:
        redirect()
        words: Words | None = None
        if isinstance(options, WordGameOptions):
            words = Words(find_corpus(options.nltk_data))
        spec = EnvironmentSpec(
            entry.id,
            "gem",
            max_steps=options.max_steps,
            is_multi_turn=True,
            success_signal="success",
            description=entry.description,
            metadata={
                "gem": version(),
                "settings": dict(entry.settings),
                "seed": options.seed,
                "note": entry.note,
            },
        )
        super().__init__(
            spec,
            lambda: GemSimulator(entry, words, options),
            num_tasks=options.size,
            snapshots=Snapshots.PORTABLE,
            limits=options.limits,
            reward_functions=make_reward_functions(options.extra_rewards),
        )

    def _signals(
        self, state: State[SimulatorHidden], action: Action, next_state: State[SimulatorHidden]
    ) -> Iterable[Signal]:
        yield from next_state.hidden["signals"]
        if next_state.is_terminal:
            won = 1.0 if next_state.hidden["truth"]["won"] else 0.0
            yield Signal("success", RewardType.OUTCOME, won, None, 0.0)
