"""The simulator: one upstream environment, and the conversation around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.action import Action
from llenvs.core.errors import UpstreamFailed
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.signals import Signal
from llenvs.core.simulator import Frame, Simulator
from llenvs.core.tools import ToolCall, ToolResult, ToolStatus
from llenvs_tau.chat import agent_message, as_shown, result_of, user_message
from llenvs_tau.domain import STOP, Domain, whole_hash
from llenvs_tau.grading import Grader
from llenvs_tau.options import TauOptions
from llenvs_tau.protocol import (
    AGENT_ERROR,
    AGENT_STOP,
    LIMITS,
    MAX_STEPS,
    USER_STOP,
    Dialogue,
    heard_by_user,
    turn_after,
)
from llenvs_tau.users import Heard, User

_MESSAGE_BYTES = 1500
"""What a message takes in a snapshot, about."""
_NOT_RUN = "(not run: the episode is over)"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a conversation stands: databases, dialogue, what the agent was shown, and (to verify it) a hash."""

    databases: Any
    dialogue: Dialogue
    chat: tuple[ChatMessage, ...]
    hash: str | None


class TauSimulator(Simulator):
    """A conversation of the agent with a user and the tools of a domain.

    Args:
        name: of the environment, for errors.
        domain: the domain.
        tasks: the upstream's tasks by index.
        truths: what is hidden of each task.
        user: who talks to the agent; None in solo mode.
        grader: grades what has ended.
        options: limits and the like.
    """

    def __init__(
        self,
        name: str,
        domain: Domain,
        tasks: Sequence[Any],
        truths: Sequence[Mapping[str, Any]],
        user: User | None,
        grader: Grader,
        options: TauOptions,
    ) -> None:
        self._name, self._domain, self._tasks, self._truths = name, domain, tasks, truths
        self._user, self._grader, self._options = user, grader, options
        self._environment: Any = None
        self._dialogue = Dialogue()
        self._chat: list[ChatMessage] = []
        self._index = self._seed = 0

    # -- the contract of a simulator ----------------------------------------------------------------------

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        self._index, self._seed = task_index, seed
        task = self._tasks[task_index]
        self._environment = self._domain.environment(task)
        if self._options.verify_isolation and self._whole_hash() != self._domain.initial_hash:
            raise UpstreamFailed(
                self._name, f"starting task {task.id}", "another episode changed the first database"
            )
        initial = task.initial_state
        history = [message.model_copy(deep=True) for message in (initial and initial.message_history) or ()]
        self._environment.set_state(
            initialization_data=initial.initialization_data if initial else None,
            initialization_actions=initial.initialization_actions if initial else None,
            message_history=history,
        )
        if not history and self._user is not None:
            history = [self._domain.upstream.orchestrator.DEFAULT_FIRST_AGENT_MESSAGE.model_copy(deep=True)]
        turn = turn_after(history) if self._user is not None or history else "agent"
        # alone, the agent's first message belongs to the beginning and is not counted
        self._dialogue = Dialogue(history, turn, steps=0 if history else -1)
        system = self._domain.system_prompt(task, self._environment.get_policy())
        self._chat = [ChatMessage.system(system), *as_shown(history)]
        self._environment.sync_tools()
        self._go_on(len(history))
        last = self._chat[-1].content if self._user is not None else task.ticket or ""
        return self._frame(last, ())

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        dialogue = self._dialogue
        dialogue.actions += 1
        if dialogue.reason is not None:  # the user stopped before the agent could say anything
            return self._frame("", tuple(_result(call, _NOT_RUN, ToolStatus.ERROR) for call in action.tool_calls))
        before = len(dialogue.messages)
        results = self._take(action)
        shown = len(dialogue.messages)
        self._chat.append(ChatMessage.assistant(action.text, action.tool_calls))
        self._chat += [ChatMessage("tool", r.content, tool_call_id=r.call_id, name=r.name) for r in results]
        self._go_on(shown)
        if dialogue.reason is None and dialogue.actions == self._options.max_steps:
            dialogue.reason = MAX_STEPS
        prompt = "\n\n".join(message.content for message in as_shown(dialogue.messages[shown:]))
        return self._frame(prompt, results, since=before)

    def save(self) -> Snapshot:
        """See `Simulator`."""
        saved = self._domain.databases.save(self._environment)
        whole = self._whole_hash() if self._options.verify_isolation else None
        return Snapshot(saved, self._dialogue.copy(), tuple(self._chat), whole)

    def restore(self, snapshot: Snapshot, task_index: int, seed: int) -> None:
        """See `Simulator`."""
        self._index, self._seed = task_index, seed
        if self._environment is None:
            self._environment = self._domain.environment(self._tasks[task_index])
        self._domain.databases.restore(self._environment, snapshot.databases)
        self._dialogue, self._chat = snapshot.dialogue.copy(), list(snapshot.chat)
        if snapshot.hash is not None and self._whole_hash() != snapshot.hash:
            raise UpstreamFailed(self._name, "going back", "another branch changed the database of this state")

    def snapshot_size(self, snapshot: Snapshot) -> int:
        """See `Simulator`."""
        return self._domain.databases.size(snapshot.databases) + _MESSAGE_BYTES * (2 + len(snapshot.chat))

    def _whole_hash(self) -> str:
        return whole_hash(self._environment)

    # -- the agent's turn ---------------------------------------------------------------------------------

    def _take(self, action: Action) -> tuple[ToolResult, ...]:
        """Send what the agent says, and run its calls."""
        dialogue = self._dialogue
        model = self._domain.upstream.message
        calls = [call for call in action.tool_calls if not call.problem]
        done = self._domain.upstream.agent.LLMSoloAgent.STOP_FUNCTION_NAME
        if self._domain.solo and any(call.name == done for call in calls):
            dialogue.sent(agent_message(model, Action(STOP), ()), to="user")
            dialogue.reason = AGENT_STOP
            return tuple(
                _result(call, STOP, ToolStatus.SUCCESS)
                if call.name == done
                else _result(call, _NOT_RUN, ToolStatus.ERROR)
                for call in action.tool_calls
            )
        if not action.tool_calls:
            self._say(action)
            return ()
        answers: list[Any] = []
        if calls:
            dialogue.sent(agent_message(model, action, calls), to="environment")
            answers = self._run(dialogue.messages[-1])
        else:  # nothing of it reaches the upstream, but it was a turn
            dialogue.steps += 1
        broken = [call for call in action.tool_calls if call.problem]
        dialogue.errors += len(broken)
        dialogue.sent(*answers, to="agent")
        self._check_limits()
        by_id = {answer.id: answer for answer in answers}
        return tuple(
            _result(call, call.problem, ToolStatus.INVALID_ARGUMENTS)
            if call.problem
            else result_of(self._environment, call, by_id[call.id])
            for call in action.tool_calls
        )

    def _say(self, action: Action) -> None:
        dialogue = self._dialogue
        message = agent_message(self._domain.upstream.message, action, ())
        if message.content is None:  # which the upstream calls an error of the agent
            dialogue.reason = AGENT_ERROR
            return
        dialogue.sent(message, to="user")
        if STOP in action.text:
            dialogue.reason = AGENT_STOP
        elif self._user is None:
            dialogue.reason = AGENT_ERROR
        self._environment.sync_tools()
        self._check_limits()

    # -- the turns of all others --------------------------------------------------------------------------

    def _go_on(self, shown: int) -> None:
        """Let user and tools act until it is the agent's turn; what the agent may see goes into the chat."""
        dialogue = self._dialogue
        while dialogue.reason is None and dialogue.turn != "agent":
            if dialogue.turn == "user":
                self._let_user_reply()
            else:
                self._run_pending_calls()
            self._environment.sync_tools()
            self._check_limits()
        self._chat += as_shown(dialogue.messages[shown:])

    def _let_user_reply(self) -> None:
        assert self._user is not None
        user, dialogue = self._user, self._dialogue
        visible = [message for message in dialogue.messages if heard_by_user(message)]
        heard = Heard(self._tasks[self._index], visible, dialogue.replies, self._seed)
        message = user_message(self._domain.upstream.message, self.outside.ask(lambda: user.reply(heard)))
        dialogue.replies += 1
        dialogue.sent(message, to="environment" if message.is_tool_call() else "agent")
        if user.may_stop and self._domain.upstream.user.UserSimulator.is_stop(message):
            dialogue.reason = USER_STOP

    def _run_pending_calls(self) -> None:
        """Run the calls of the last message, which is the user's, or one that the task begins with."""
        message = self._dialogue.messages[-1]
        self._dialogue.sent(*self._run(message), to="user" if message.role == "user" else "agent")

    def _run(self, message: Any) -> list[Any]:
        """The answers of the tools to the calls of `message`."""
        # copies, since the tools may keep (and change) what they are given
        answers = [self._environment.get_response(call.model_copy(deep=True)) for call in message.tool_calls]
        self._dialogue.errors += sum(answer.error for answer in answers)
        self._environment.sync_tools()
        return answers

    def _check_limits(self) -> None:
        self._dialogue.check_limits(self._options.max_messages, self._options.max_errors)

    # -- what is shown ------------------------------------------------------------------------------------

    def _frame(self, prompt: str, results: tuple[ToolResult, ...], since: int = 0) -> Frame:
        dialogue = self._dialogue
        info: dict[str, Any] = {
            "task_id": self._tasks[self._index].id,
            "user_tool_calls": [
                {"name": call.name, "arguments": call.arguments}
                for message in dialogue.messages[since:]
                if message.role == "user" and message.is_tool_call()
                for call in message.tool_calls
            ],
            "messages": dialogue.steps,
            "errors": dialogue.errors,
        }
        ended = dialogue.reason is not None and dialogue.actions > 0
        if dialogue.reason is not None:
            info["termination_reason"] = dialogue.reason
        truth = {**self._truths[self._index], "messages": dialogue.steps, "termination_reason": dialogue.reason}
        return Frame(
            Observation(
                prompt, messages=tuple(self._chat), tool_results=results, available_tools=self._domain.agent_tools
            ),
            self._grade() if ended else (),
            terminated=ended and dialogue.reason not in LIMITS,
            truncated=ended and dialogue.reason in LIMITS,
            info=info,
            truth=truth,
        )

    def _grade(self) -> tuple[Signal, ...]:
        assert self._dialogue.reason is not None
        task = self._tasks[self._index]
        return self._grader.grade(task, self._dialogue.messages, self._dialogue.reason, self.outside.ask)


def _result(call: ToolCall, content: str, status: ToolStatus) -> ToolResult:
    return ToolResult(call.id, content, status, call.name)
