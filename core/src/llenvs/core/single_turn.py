"""Environments of one question and one answer: pure functions, nothing to keep."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Environment, EnvironmentSpec
from llenvs.core.extraction import Extractor
from llenvs.core.observation import Observation
from llenvs.core.rewards import RewardFunction
from llenvs.core.signals import Signal
from llenvs.core.state import HiddenT, State

_EMPTY = Observation()


class SingleTurnEnvironment(Environment[HiddenT], Generic[HiddenT]):
    """The model answers once; an extractor finds the answer in its response; a scorer judges it.

    A subclass gives `num_tasks`, `_start` and `_score`.
    """

    def __init__(
        self, spec: EnvironmentSpec, extractor: Extractor, *, reward_functions: Iterable[RewardFunction] = ()
    ) -> None:
        super().__init__(spec, reward_functions=reward_functions)
        self.extractor = extractor
        self._extracted: tuple[str, str | None] = ("", extractor.extract(""))

    @abstractmethod
    def _score(self, hidden: HiddenT, answer: str | None) -> Iterable[Signal]:
        """Signals for `answer` (None: no answer was found in the response)."""

    def _answer(self, text: str) -> str | None:
        """The answer in `text`. A step asks twice, so the last one is kept (as one tuple: threads may race)."""
        last, answer = self._extracted
        if last is not text:
            answer = self.extractor.extract(text)
            self._extracted = (text, answer)
        return answer

    def _advance(self, state: State[HiddenT], action: Action) -> Advance:
        answer = self._answer(action.text)
        info: Mapping[str, Any] = {"answer": answer}
        return Advance(
            _EMPTY,
            state.hidden,
            terminated=True,
            resolved_action=None if answer is None else Action(answer),
            info=info,
        )

    def _signals(self, state: State[HiddenT], action: Action, next_state: State[HiddenT]) -> Iterable[Signal]:
        return self._score(state.hidden, self._answer(action.text))
