"""The simulator: a live episode of the upstream, which waits for the policy."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.task import Task

from llenvs.core.action import Action
from llenvs.core.errors import SimulatorCrashed, UpstreamFailed
from llenvs.core.observation import Observation
from llenvs.core.simulator import Frame, Simulator
from llenvs.core.tools.executor import with_ids
from llenvs_verifiers_v1.episode import Asked, Episode, Failed, Finished, Stage
from llenvs_verifiers_v1.frames import shown, truth_of
from llenvs_verifiers_v1.pure import info_of
from llenvs_verifiers_v1.relay import tool_statuses
from llenvs_verifiers_v1.scoring import signals_of
from llenvs_verifiers_v1.seats import Seats


class EpisodeSimulator(Simulator):
    """One episode at a time, of any of the tasks.

    Args:
        name: ``adapter/name``, for errors.
        tasks: by task index.
        stage: what the episodes share.
        seats: who plays what.
        time_limit: seconds until the next question or the end.
    """

    def __init__(
        self, name: str, tasks: Sequence[Task[Any, Any, Any]], stage: Stage, seats: Seats, time_limit: float
    ) -> None:
        self._name, self._tasks, self._stage, self._seats = name, tasks, stage, seats
        self._time_limit = time_limit
        self._task = tasks[0]
        self._episode: Episode | None = None
        self._asked: Asked | None = None
        self._turn = 0

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        self.close()
        self._task, self._turn = self._tasks[task_index], 0
        self._episode = Episode(self._stage, self._task)
        self._episode.start()
        frame = self._go_on(None, f"starting task {task_index}")
        if frame.terminated or frame.truncated:
            raise UpstreamFailed(self._name, f"starting task {task_index}", f"it ended at once: {frame.info}")
        return frame

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        assert self._episode is not None
        assert self._asked is not None
        understood = Action(action.text, with_ids(action.tool_calls, f"call_{self._turn}"))
        self._turn += 1
        self._episode.answer(self._asked, understood)
        return self._go_on(understood, "stepping")

    def close(self) -> None:
        """End the live episode."""
        if self._episode is not None:
            self._episode.close()
            self._episode = self._asked = None

    def _go_on(self, action: Action | None, doing: str) -> Frame:
        """To the policy's next turn or the end; other seats are answered on the way."""
        assert self._episode is not None
        while True:
            try:
                event = self._episode.next(self._time_limit)
            except queue.Empty:
                why = f"no answer within {self._time_limit:g} s (option time_limit)"
                raise SimulatorCrashed(self._name, doing, why, timed_out=True) from None
            match event:
                case Failed(error):
                    raise UpstreamFailed(self._name, doing, error) from error
                case Finished():
                    self._asked = None
                    return self._end(event, action, doing)
                case Asked() if event.seat == self._seats.policy:
                    self._asked = event
                    return self._question(event, action)
                case Asked():
                    reply: Mapping[str, Any] = self.outside.ask(partial(self._seats.reply, event))
                    self._episode.answer(event, Action(reply["text"], reply["tool_calls"]))

    def _question(self, asked: Asked, action: Action | None) -> Frame:
        statuses = tool_statuses.get(asked.trace_id, {})
        observation = shown(asked.body["messages"], asked.body.get("tools") or (), statuses, action)
        info = info_of(self._task) if action is None else {}
        return Frame(observation, resolved_action=action, info=info, truth=truth_of(self._task.data))

    def _end(self, finished: Finished, action: Action | None, doing: str) -> Frame:
        episode = finished.episode
        if episode.errors:
            error = episode.errors[-1]
            raise UpstreamFailed(self._name, doing, f"{error.type}: {error.message}")
        for trace in episode.traces:
            if not trace.ok and not finished.records[trace.id].failures and trace.last_error is not None:
                error = trace.last_error
                raise UpstreamFailed(self._name, doing, f"{error.type}: {error.message}")
        own = [trace for trace in episode.traces if trace.agent.name == self._seats.policy]
        if not own:
            raise UpstreamFailed(self._name, doing, f"the episode ended without the seat {self._seats.policy!r}")
        last = own[-1]
        messages = [message_to_wire(message) for message in last.messages]
        observation = shown(messages, (), None, action)
        truncated = last.is_truncated or last.is_timeout or episode.is_timeout
        return Frame(
            Observation(observation.prompt, messages=observation.messages, tool_results=observation.tool_results),
            signals_of(episode.traces, finished.records, self._seats.policy),
            terminated=not truncated,
            truncated=truncated,
            resolved_action=action,
            info={"stop_condition": last.stop_condition},
            truth=truth_of(self._task.data),
        )
