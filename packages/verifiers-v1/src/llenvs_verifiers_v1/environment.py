"""The environments: episodes of any taskset, steppable from any state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version as distribution_version
from typing import Any

from verifiers.v1.configs.agent import resolve_agent

from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import UpstreamFailed
from llenvs.core.rewards import make_reward_functions
from llenvs.core.simulator import Simulator, SimulatorEnvironment
from llenvs.core.tools import ToolDefinition
from llenvs_verifiers_v1.episode import ENDPOINT, MODEL, Stage
from llenvs_verifiers_v1.loading import has_judges, load
from llenvs_verifiers_v1.options import VerifiersV1Options
from llenvs_verifiers_v1.pure import PureSimulator, is_pure
from llenvs_verifiers_v1.seats import Seats, backend_of
from llenvs_verifiers_v1.simulator import EpisodeSimulator


class VerifiersV1Environment(SimulatorEnvironment):
    """The episodes of a taskset: task i is its i-th task.

    A task that needs nothing but a reply is scored in place (`mode` "pure" in the spec's metadata); any other is a
    real episode of the upstream that waits for the policy, reached again by a checked replay of its actions.
    Observations hold the whole chat (`observation.messages`); `prompt` is what is new in it.

    Signals, with the last step of an episode:
        one for each reward, under its name, with its weight; metrics have weight 0; the rewards of other seats are
            ``seat.name`` with weight 0.
        total_reward: the upstream's own reward of the policy's rollout, with weight 0; it declares success unless
            the options say otherwise. Without a number when a reward has failed.

    A function that raised has no number, and ``metadata["error"]`` says what it raised.
    """

    def __init__(self, name: str, options: VerifiersV1Options) -> None:
        loaded = load(name, options)
        self._env = loaded.env
        seats = Seats(loaded.seats, options.seat, options.env_llm, loaded.own_endpoint)
        judge = None if options.judge is None else backend_of(options.judge, "judge")
        self._stage = Stage(loaded.env, f"verifiers_v1/{name}", judge)
        judged = has_judges(loaded.tasks)
        pure = options.mode == "auto" and is_pure(loaded.env, loaded.tasks)
        seat = getattr(loaded.env.config, seats.policy)
        self._has_tools = not pure and _has_tools(loaded.env, loaded.tasks)
        self._tools: tuple[ToolDefinition, ...] | None = None if self._has_tools else ()
        limit = 1 if pure else seat.max_turns
        spec = EnvironmentSpec(
            name,
            "verifiers_v1",
            max_steps=limit,
            is_multi_turn=limit != 1,
            deterministic=options.deterministic and not seats.others and judge is None and not judged,
            supports_tools=self._has_tools,
            supports_images=any(_has_image(task) for task in loaded.tasks[:100]),
            success_signal=options.success_signal,
            success_threshold=options.success_threshold,
            description=f"{type(loaded.env).__name__} over {type(loaded.env.taskset).__name__}",
            metadata={
                "verifiers": distribution_version("verifiers"),
                "mode": "pure" if pure else "episode",
                "seats": list(loaded.seats),
                "seat": seats.policy,
            },
        )
        make: Callable[[], Simulator]
        if pure:
            agent = resolve_agent(seat, model=MODEL, client=ENDPOINT)
            make = lambda: PureSimulator(loaded.tasks, agent, self._stage)  # noqa: E731
        else:
            make = lambda: EpisodeSimulator(  # noqa: E731
                spec.id, loaded.tasks, self._stage, seats, options.time_limit
            )
        super().__init__(
            spec,
            make,
            num_tasks=len(loaded.tasks),
            limits=options.limits,
            reward_functions=make_reward_functions(options.extra_rewards),
        )

    @property
    def upstream(self) -> Any:
        """The environment object of the upstream."""
        return self._env

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """The tools of task 0; its tool servers are started to ask them, once."""
        if self._tools is None:
            state, _ = self.reset(seed=0, options={"task_index": 0})
            self._tools = state.observation.available_tools
        return self._tools

    def close(self) -> None:
        """End all live episodes and what is served for them."""
        super().close()
        try:
            self._stage.close()
        except Exception as error:
            raise UpstreamFailed(self.spec.id, "closing it", error) from error


def _has_tools(env: Any, tasks: Sequence[Any]) -> bool:
    shared = env.taskset.toolsets(env.taskset.config)
    return bool(shared) or (bool(tasks) and bool(type(tasks[0]).toolsets(tasks[0].config)))


def _has_image(task: Any) -> bool:
    prompt = task.data.prompt
    messages = prompt if isinstance(prompt, list) else ()
    parts = (part for message in messages if isinstance(message.content, list) for part in message.content)
    return any(part.type == "image_url" for part in parts)
