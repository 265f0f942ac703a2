"""The environments: rollouts of any environment module, steppable from any state."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as distribution_version
from typing import Any

from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import InvalidAction, UpstreamFailed
from llenvs.core.loop_thread import EventLoopThread
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import SignalBundle
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden, Snapshots
from llenvs.core.state import State
from llenvs.core.tools import ToolDefinition
from llenvs_verifiers.episode import is_made_of_tools, watch_tool_errors
from llenvs_verifiers.judges import has_judge, judge_backend, use_judge
from llenvs_verifiers.loading import leaves, load
from llenvs_verifiers.messages import tool_definitions
from llenvs_verifiers.options import VerifiersOptions
from llenvs_verifiers.scoring import TOTAL, names_of, score, watch
from llenvs_verifiers.simulator import VerifiersSimulator
from llenvs_verifiers.tasks import Tasks


class VerifiersEnvironment(SimulatorEnvironment):
    """The rollouts of an environment module: task i is row i of its data set.

    Observations hold the whole chat, since the environment dictates it (`observation.messages`); `prompt` is what
    is new in it.

    Signals, those of the rubric with the last step of an episode:
        one for each reward function, under its name, with its weight; a metric is one of weight 0.
        total_reward: the upstream's own reward, with weight 0; success is that it reaches the environment's
            `pass_threshold`. Without a number when a function that counts has failed.
        step_reward: what the environment gave the turn, where it does so; weight 0.

    A function that raised has no number, and ``metadata["error"]`` says what it raised.
    """

    def __init__(self, name: str, options: VerifiersOptions) -> None:
        judge = None if options.judge is None else judge_backend(options.judge)
        env = load(name, options.args, with_judge=judge is not None)
        self._leaves = leaves(name, env)
        for leaf in self._leaves:
            watch(leaf.rubric)
            watch_tool_errors(leaf)
            if judge is not None:
                use_judge(leaf.rubric, judge)
            if options.max_steps is not None:
                own = leaf.max_turns if leaf.max_turns > 0 else options.max_steps
                leaf.max_turns = min(options.max_steps, own)
        self._env = env
        self._loop = EventLoopThread(f"verifiers/{name}")
        self._tasks = Tasks(env, options)
        own = [tool for leaf in self._leaves for tool in leaf.tool_defs or ()]
        tools = {tool.name: tool for tool in tool_definitions([*own, *self._tasks.own_tools()])}
        self._tools = tuple(tools.values())
        limits = [leaf.max_turns for leaf in self._leaves]
        most = max(limits) if min(limits) > 0 else None
        spec = EnvironmentSpec(
            name,
            "verifiers",
            max_steps=most,
            is_multi_turn=most != 1,
            deterministic=options.deterministic and not any(has_judge(leaf.rubric) for leaf in self._leaves),
            supports_tools=bool(self._tools),
            supports_images=self._tasks.has_images,
            success_signal=TOTAL,
            success_threshold=float(env.pass_threshold),
            description=f"{type(env).__name__} of {env.env_id}",
            metadata={"verifiers": distribution_version("verifiers"), "split": options.split},
        )
        names = [name for leaf in self._leaves for name in names_of(leaf.rubric)] if len(self._leaves) > 1 else []
        simple = all(is_made_of_tools(leaf) for leaf in self._leaves)
        copies = options.branching == "copy" or (options.branching == "auto" and simple)
        super().__init__(
            spec,
            lambda: VerifiersSimulator(spec.id, self._tasks, self._loop, names),
            num_tasks=len(self._tasks),
            snapshots=Snapshots.LOCAL if copies else Snapshots.NONE,
            limits=options.limits,
            reward_functions=make_reward_functions(options.extra_rewards),
        )

    @property
    def upstream(self) -> Any:
        """The environment object of the upstream."""
        return self._env

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """All tools of all tasks."""
        return self._tools

    @property
    def has_group_rewards(self) -> bool:
        """Whether reward functions compare rollouts of one task: then see `score_group`."""
        return any(leaf.requires_group_rollouts for leaf in self._leaves)

    def score_group(self, states: Sequence[State[SimulatorHidden]]) -> list[SignalBundle]:
        """The signals of finished episodes of one task, scored together as the upstream scores a group.

        A step scores its episode as a group of one, so what compares episodes means nothing there. Judges are
        asked anew. `total_reward` has in its metadata the advantage, the reward less the mean of the group.

        Args:
            states: terminal states of the same task, one for each episode.

        Returns:
            For each state its signals, in the order of `states`.

        Raises:
            InvalidAction: a state is not terminal, or they are not of one task.
            UpstreamFailed: the upstream's own code failed.
        """
        hiddens = [self._checked(state) for state in states]
        if not all(state.is_terminal for state in states):
            raise InvalidAction(
                f"{self.spec.id}: only finished episodes can be scored; step each to its end first"
            )
        if len({hidden["recipe"].task_index for hidden in hiddens}) != 1:
            raise InvalidAction(f"{self.spec.id}: a group needs at least one episode, all of one task")
        episodes = []
        for state in states:
            simulator = self._standing_at(state)
            assert isinstance(simulator, VerifiersSimulator)
            episodes.append(simulator.episode)
            self._cache.discard(simulator)
        rollouts = [episode.state for episode in episodes]
        try:
            scored = self._loop.run(score(episodes[0].env, rollouts))
        except Exception as error:
            raise UpstreamFailed(self.spec.id, "scoring a group", error) from error
        return [SignalBundle(signals) for signals in scored]

    def close(self) -> None:
        """Tear the upstream's environments down, as it does itself when its process ends."""
        super().close()
        leaves, self._leaves = self._leaves, []
        try:
            for leaf in leaves:
                self._loop.run(leaf._teardown())
        except Exception as error:
            raise UpstreamFailed(self.spec.id, "tearing it down", error) from error
        finally:
            self._loop.close()
