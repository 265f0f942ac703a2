"""The same episode in the upstream alone: its own orchestrator, its own evaluator, our actions and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llenvs import Action
from llenvs_tau.chat import agent_message, user_message
from llenvs_tau.domain import STOP
from llenvs_tau.upstream import upstream
from llenvs_tau.users import ScriptedUser


@dataclass
class Episode:
    """What came of it: the messages as plain data, why it ended, and the upstream's reward info."""

    messages: list[tuple[Any, ...]]
    reason: str
    info: Any

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that the upstream reports, by the names of our signals."""
        return {
            "db": self.info.db_check.db_reward,
            "env_assertion": [check.met for check in self.info.env_assertions or []],
            "action": [check.action_match for check in self.info.action_checks or []],
            "communicate": [check.met for check in self.info.communicate_checks or []],
        }


def plain(messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Upstream messages without clocks and counters."""
    return [
        (
            m.role,
            m.content,
            [(c.id, c.name, c.arguments, c.requestor) for c in getattr(m, "tool_calls", None) or ()],
            getattr(m, "requestor", None),
            getattr(m, "error", None),
        )
        for m in messages
    ]


def run_alone(
    domain: str,
    task: Any,
    actions: Sequence[Action],
    script: Sequence[Any],
    *,
    solo: bool = False,
    max_steps: int = 200,
    max_errors: int = 10,
) -> Episode:
    """Play `actions` and `script` with the upstream's orchestrator, and evaluate as it does."""
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
    from tau2.orchestrator.orchestrator import Orchestrator

    tau2 = upstream()
    environment = tau2.registry.get_env_constructor(domain)(solo_mode=solo)
    orchestrator = Orchestrator(
        domain=domain,
        agent=_agent(tau2, environment, task, actions, solo),
        user=tau2.user.DummyUser() if solo else _User(tau2, script),
        environment=environment,
        task=task,
        max_steps=max_steps,
        max_errors=max_errors,
        solo_mode=solo,
    )
    run = orchestrator.run()
    info = evaluate_simulation(
        simulation=run, task=task, evaluation_type=EvaluationType.ALL, solo_mode=solo, domain=domain
    )
    return Episode(plain(run.messages), run.termination_reason.value, info)


def _agent(tau2: Any, environment: Any, task: Any, actions: Sequence[Action], solo: bool) -> Any:
    kind = tau2.agent.LLMSoloAgent if solo else tau2.agent.LLMAgent
    left = list(actions)

    class Scripted(kind):  # type: ignore[misc, valid-type]
        def generate_next_message(self, message: Any, state: Any) -> Any:
            action = left.pop(0)
            said = agent_message(tau2.message, action, action.tool_calls)
            return (self._check_if_stop_toolcall(said) if solo and said.is_tool_call() else said), state

        @classmethod
        def check_valid_task(cls, task: Any) -> bool:
            return True  # the upstream's refuses those without reference actions, which it grades all the same

        @classmethod
        def is_stop(cls, message: Any) -> bool:
            return not message.is_tool_call() and STOP in (message.content or "")

    tools = [*environment.get_tools(), *(environment.get_user_tools() if solo and environment.user_tools else [])]
    return Scripted(tools, environment.get_policy(), **({"task": task} if solo else {}), llm="none")


class _User:
    """The script, as the upstream's orchestrator asks for it."""

    def __init__(self, tau2: Any, script: Sequence[Any]) -> None:
        self._tau2, self._user, self._replies = tau2, ScriptedUser(list(script)), 0

    def get_init_state(self, message_history: Any = None) -> Any:
        return self._tau2.user.UserState(system_messages=[], messages=[])

    def generate_next_message(self, message: Any, state: Any) -> Any:
        from llenvs_tau.users import Heard

        reply = self._user.reply(Heard(None, (), self._replies, 0))
        self._replies += 1
        return user_message(self._tau2.message, reply), state

    def set_seed(self, seed: int) -> None: ...

    def stop(self, *arguments: Any) -> None: ...
