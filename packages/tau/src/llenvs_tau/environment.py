"""The environments: a domain and a selection of its tasks, steppable from any state."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Advance, EnvironmentSpec
from llenvs.core.errors import InvalidAction, InvalidOption, TaskIndexOutOfRange, UnknownName
from llenvs.core.rewards import make_reward_functions
from llenvs.core.simulator import SimulatorEnvironment, SimulatorHidden
from llenvs.core.state import State
from llenvs.core.tool_use import ToolUse, monitored
from llenvs.core.tools import ToolDefinition
from llenvs.core.tools.executor import with_ids
from llenvs_tau.catalogue import DOMAINS
from llenvs_tau.domain import STOP, Domain, domain_of, tasks_of
from llenvs_tau.grading import Grader
from llenvs_tau.judge import Judge
from llenvs_tau.options import TauOptions
from llenvs_tau.reference import ReferenceEpisode, reference_episode
from llenvs_tau.simulator import TauSimulator
from llenvs_tau.users import backend_of, make_user, sampling_of, user_kind


class UnknownTask(UnknownName):
    """The domain has no task of this id in the split."""

    kind = "task"


class TauEnvironment(SimulatorEnvironment):
    """Customer service: the agent talks to a user and calls tools, under a policy.

    Observations hold the whole chat in ``messages``: the system message with the policy, the greeting, and what
    user, agent and tools said. An action is text (for the user) or tool calls.

    Signals, all with the last step:
        reward: the upstream's, 0.0 or 1.0; decides success.
        db, env_assertion, action, communicate, nl_assertion: its parts, weight 0, whether or not they count in the
            task (``metadata["in_basis"]``); ``nl_assertion`` has a number only with a judge.
        tool_validity, tool_efficiency: see `llenvs.core.tool_use`; weight 0.
    """

    def __init__(self, domain_name: str, split: str | None, options: TauOptions) -> None:
        name = domain_name if split is None else f"{domain_name}:{split}"
        if split is not None and options.split not in (None, split):
            raise InvalidOption("split", options.split, f"the name {name!r} says another one")
        kind = user_kind(options)
        domain = domain_of(domain_name, solo=kind == "solo", options=options.domain_options)
        user = make_user(domain, options)
        judge = _judge(domain, options)
        grader = Grader(domain, judge, options.nl_assertions)
        tasks = _selected(domain, split or options.split, options, grader)
        if user is not None:
            user.check(tasks)
        truths = [_truth(task) for task in tasks]
        spec = EnvironmentSpec(
            name,
            "tau",
            max_steps=options.max_steps,
            is_multi_turn=True,
            deterministic=(user is None or user.deterministic) and judge is None,
            supports_tools=True,
            success_signal="reward",
            description=DOMAINS.get(domain_name, ("customer service", ()))[0],
            metadata={"upstream": " ".join(domain.upstream.release), "user": kind, "domain": domain_name},
        )
        super().__init__(
            spec,
            lambda: TauSimulator(spec.id, domain, tasks, truths, user, grader, options),
            num_tasks=len(tasks),
            snapshots=domain.databases.snapshots,
            limits=options.limits,
            reward_functions=monitored(make_reward_functions(options.extra_rewards)),
        )
        self._domain, self._tasks, self._user, self._judge, self._grader = domain, tasks, user, judge, grader

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """The tools of the agent."""
        return self._domain.agent_tools

    @property
    def policy(self) -> str:
        """The document that the agent is to follow; it stands in the system message."""
        return self._domain.policy

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The upstream's ids of the tasks, by index."""
        return tuple(task.id for task in self._tasks)

    def reference_episode(self, task_index: int, *, tell: bool = True) -> ReferenceEpisode:
        """The upstream's reference solution of a task, to be played with the user as its script says.

        Args:
            task_index: which task.
            tell: whether the agent tells the user what it is to be told.

        Raises:
            TaskIndexOutOfRange: there is no such task.
        """
        return reference_episode(self._task(task_index), solo=self._domain.solo, tell=tell)

    def noop_reward(self, task_index: int) -> float | None:
        """What an agent gets for this task that does nothing at all; None where the upstream cannot grade that.

        Raises:
            TaskIndexOutOfRange: there is no such task.
        """
        return _noop_reward(self._grader, self._task(task_index))

    def close(self) -> None:
        """Close the simulators, and backends that were made for user and judge."""
        super().close()
        for each in (self._user, self._judge):
            if each is not None:
                each.close()

    def _task(self, task_index: int) -> Any:
        if not 0 <= task_index < self.num_tasks:
            raise TaskIndexOutOfRange(task_index, self.num_tasks, self.spec.id)
        return self._tasks[task_index]

    def _advance(self, state: State[SimulatorHidden], action: Action) -> Advance:
        action = Action(action.text, with_ids(action.tool_calls, f"call_{state.metadata.step}"))
        advance = super()._advance(state, action)
        use = ToolUse.of(state).after(action.tool_calls, advance.observation.tool_results)
        return replace(advance, resolved_action=action, info={**advance.info, **use.info})

    def _checked(self, state: State[SimulatorHidden]) -> SimulatorHidden:
        hidden = super()._checked(state)
        task_id = self._tasks[hidden["recipe"].task_index].id
        truth = hidden.get("truth")
        if not isinstance(truth, Mapping) or truth.get("task_id") != task_id:
            raise InvalidAction(
                f"{self.spec.id}: this state is of another selection of tasks; make the environment with the same "
                "split, tasks, size and seed"
            )
        return hidden


def _judge(domain: Domain, options: TauOptions) -> Judge | None:
    if options.judge_backend is None:
        return None
    backend, owned = backend_of("judge_backend", options.judge_backend)
    sampling = sampling_of("judge_sampling", options.judge_sampling, backend)
    return Judge(domain.upstream.nl_evaluator, backend, sampling, owned=owned)


def _selected(domain: Domain, split: str | None, options: TauOptions, grader: Grader) -> tuple[Any, ...]:
    """The tasks that the options ask for, in their order."""
    tasks = list(tasks_of(domain.name, split))
    if domain.solo:
        tasks = [task for task in tasks if task.ticket is not None]
    if options.tasks is not None:
        by_id = {task.id: task for task in tasks}
        for wanted in options.tasks:
            if wanted not in by_id:
                raise UnknownTask(wanted, list(by_id), f"tasks of tau/{domain.name}")
        tasks = [by_id[wanted] for wanted in options.tasks]
    if options.exclude_noop_tasks:
        tasks = [task for task in tasks if _noop_reward(grader, task) != 1.0]
    if options.seed is not None:
        random.Random(options.seed).shuffle(tasks)
    if not tasks:
        raise InvalidOption("exclude_noop_tasks", True, "leaves no task")
    return tuple(tasks[: options.size])


def _noop_reward(grader: Grader, task: Any) -> float | None:
    message = grader.domain.upstream.message
    initial = task.initial_state
    history = list((initial and initial.message_history) or ())
    said = [] if grader.domain.solo else [message.UserMessage(role="user", content=STOP)]
    reward = replace(grader, judge=None).grade(task, [*history, *said], "user_stop", lambda call: call())[0]
    return reward.reward


def _truth(task: Any) -> dict[str, Any]:
    """What is hidden of a task: what the user knows, and what the upstream grades by."""
    criteria = task.evaluation_criteria.model_dump(mode="json") if task.evaluation_criteria is not None else {}
    return {"task_id": task.id, "scenario": str(task.user_scenario), "criteria": criteria}
