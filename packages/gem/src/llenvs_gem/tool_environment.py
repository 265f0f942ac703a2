"""Questions with tools: calls first, then one answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import EnvironmentSpec, Start
from llenvs.core.extraction import make_extractor
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.state import State
from llenvs.core.tool_environment import TaskStart, ToolEnvironment, Turn
from llenvs.core.tools import ToolResult
from llenvs_gem.answers import native_extraction
from llenvs_gem.catalogue import Entry
from llenvs_gem.judges import Verdict
from llenvs_gem.options import QuestionOptions
from llenvs_gem.question_environment import Hidden, Questions, outcome, question_metadata
from llenvs_gem.tools import LAST_USE, SUBMIT, BudgetedExecutor, make_executor

_UNANSWERED = Verdict(0.0, False)


class ToolHidden(Hidden):
    """Hidden state: also how many tool calls were taken, what those of the last step earned, and the judgement."""

    tool_uses: int
    tool_reward: float
    verdict: tuple[float, bool, str | None] | None


class GemToolEnvironment(ToolEnvironment[ToolHidden]):
    """One data set with tools: task i is its row i.

    An episode ends with an answer: by the tool `submit_answer`, or by a response without calls, whose answer is
    found as without tools. A submitted text in which the upstream would find an answer is that answer.

    Signals: `tool_reward` with each step (STEP, weight 1), the options tool_reward and tool_success_reward for
    each call; with the last step `reward` and `success` as without tools, 0.0 if no answer was given.
    """

    def __init__(self, entry: Entry, options: QuestionOptions) -> None:
        most = options.max_tool_uses
        limit = options.max_steps
        if limit is None and most is not None:
            limit = most + 1
        spec = EnvironmentSpec(
            entry.id,
            "gem",
            max_steps=limit,
            is_multi_turn=True,
            deterministic=False,  # tools may tell the time, or search a changing world
            supports_images="image_key" in entry.settings,
            success_signal="success",
            description=entry.description,
            metadata={**question_metadata(entry, options), "tool_types": list(options.tool_types)},
        )
        self._native = native_extraction(entry.kind)
        self._extractor = make_extractor(options.answer_extractor).bind(self._native)
        reward_functions = make_reward_functions(options.extra_rewards)
        self._questions = Questions(entry, options)
        try:
            self._budget = BudgetedExecutor(make_executor(options), options)
        except BaseException:
            self._questions.close()
            raise
        super().__init__(spec, self._budget, reward_functions=reward_functions)

    @property
    def num_tasks(self) -> int:
        """Rows of the data set, or the option `size`."""
        return len(self._questions)

    def close(self) -> None:
        """Let the workers and the tools go."""
        super().close()
        self._questions.close()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        start = super()._start(task_index, seed, options)
        if not self.spec.supports_images:
            return start
        images = self._questions.item(task_index).images
        return replace(start, observation=replace(start.observation, images=images))

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        item = self._questions.item(task_index)
        hidden: ToolHidden = {
            **self._questions.hidden(item),
            "tool_uses": 0,
            "tool_reward": 0.0,
            "verdict": None,
        }
        return TaskStart(item.question, hidden)

    def _react(self, action: Action, results: tuple[ToolResult, ...], turn: Turn) -> Turn:
        before: ToolHidden = turn.hidden
        spent = self._budget.spent(action.tool_calls, results, before["tool_uses"])
        answer, answered = self._answer(action, results)
        verdict = self._questions.judge(before, answer) if answered else None
        hidden: ToolHidden = {
            **before,
            "tool_uses": spent.uses,
            "tool_reward": spent.reward,
            "verdict": None if verdict is None else (verdict.reward, verdict.correct, verdict.error),
        }
        prompt = LAST_USE if spent.last and not answered else ""
        return Turn(hidden, prompt, terminated=answered, info={"tool_uses": spent.uses})

    def _answer(self, action: Action, results: tuple[ToolResult, ...]) -> tuple[str | None, bool]:
        """The answer that `action` gives, and whether it gives one (which may be none that can be read)."""
        if not action.tool_calls:
            return self._extractor.extract(action.text), True
        for call, result in zip(action.tool_calls, results, strict=True):
            if call.name == SUBMIT and result.ok:
                submitted = str(call.arguments["answer"])
                found = self._native(submitted)
                return (submitted if found is None else found), True
        return None, False

    def _signals(
        self, state: State[ToolHidden], action: Action, next_state: State[ToolHidden]
    ) -> Iterable[Signal]:
        hidden = next_state.hidden
        yield Signal("tool_reward", RewardType.STEP, hidden["tool_reward"])
        if next_state.is_terminal:
            verdict = hidden["verdict"]
            yield from outcome(_UNANSWERED if verdict is None else Verdict(*verdict))
