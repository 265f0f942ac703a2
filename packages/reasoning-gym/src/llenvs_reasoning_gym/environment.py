"""The environments: a question, an answer, the upstream's score."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from pydantic_core import to_jsonable_python

from llenvs.core.environment import EnvironmentSpec, Start
from llenvs.core.errors import InvalidAction, UpstreamFailed
from llenvs.core.extraction import make_extractor
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.single_turn import SingleTurnEnvironment
from llenvs.core.state import State
from llenvs_reasoning_gym.catalogue import CATEGORY, COMPOSITE, DESCRIPTION, ISOLATED
from llenvs_reasoning_gym.dataset import Dataset, LocalDataset
from llenvs_reasoning_gym.options import ReasoningGymOptions
from llenvs_reasoning_gym.recipe import Recipe
from llenvs_reasoning_gym.scoring import REPAIRED
from llenvs_reasoning_gym.upstream import extract_answer, library, version
from llenvs_reasoning_gym.worker import IsolatedDataset


class Hidden(TypedDict):
    """Hidden state: the item, ground truth included.

    `dataset` is the environment's name, `entry` the upstream's item: ``question``, ``answer`` (None for the five
    datasets without one answer) and ``metadata``.
    """

    dataset: str
    entry: dict[str, Any]


class ReasoningGymEnvironment(SingleTurnEnvironment[Hidden]):
    """One dataset of ReasoningGym: task i is its item i, the reward its score.

    Signals: `score`, the upstream's own value in [0, 1], and `correctness`, 1.0 where the score is exactly 1.0
    and else 0.0. One of them has weight 1, the other 0 (option `reward`). Success is `correctness`. A response
    without an answer is worth what the upstream gives for None (0.01 for countdown and fraction_simplification,
    0.0 nearly everywhere else). `score` has ``metadata["error"]`` when the answer could not be scored, and
    ``metadata["upstream_score"]`` when a faulty scorer was corrected.
    """

    def __init__(self, name: str, options: ReasoningGymOptions) -> None:
        recipe = Recipe.from_options(name, options)
        config = recipe.upstream_config()
        parts = [part.name for part in recipe.parts()]
        reasons = {part: ISOLATED[part] for part in parts if part in ISOLATED}
        extractor = make_extractor(options.answer_extractor).bind(extract_answer)
        spec = EnvironmentSpec(
            name,
            "reasoning_gym",
            success_signal="correctness",
            description=describe(name),
            metadata={
                "reasoning_gym": version(),
                "category": CATEGORY.get(name, COMPOSITE),
                "config": to_jsonable_python(dataclasses.asdict(config)),
                "isolated": reasons,
                "repaired": {
                    part: (REPAIRED[part].__doc__ or "").strip()
                    for part in parts
                    if options.repair_scorers and part in REPAIRED
                },
            },
        )
        super().__init__(spec, extractor, reward_functions=make_reward_functions(options.extra_rewards))
        self._size = options.size
        self._system: tuple[ChatMessage, ...] = ()
        if options.upstream_prompt is not None:
            prompt = library().utils.SYSTEM_PROMPTS[options.upstream_prompt]
            self._system = (ChatMessage.system(prompt),)
        self._weight = 1.0 if options.reward == "score" else 0.0
        weight = 1.0 - self._weight
        self._correct = Signal("correctness", RewardType.OUTCOME, 1.0, None, weight)
        self._incorrect = Signal("correctness", RewardType.OUTCOME, 0.0, None, weight)
        self._dataset: Dataset
        if reasons:
            self._dataset = IsolatedDataset(recipe, options.repair_scorers, options.time_limit)
        else:
            self._dataset = LocalDataset(recipe, options.repair_scorers)

    @property
    def num_tasks(self) -> int:
        """The option `size`."""
        return self._size

    def ground_truth(self, state: State[Hidden]) -> str | None:
        """The upstream's answer; None for the datasets without one."""
        answer = state.hidden["entry"]["answer"]
        return None if answer is None else str(answer)

    def close(self) -> None:
        """Let the worker process go, if this environment uses it."""
        self._dataset.close()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        try:
            entry = self._dataset.entry(task_index)
        except UpstreamFailed:
            raise
        except Exception as error:
            raise UpstreamFailed(self.spec.id, f"making item {task_index}", error) from error
        question = entry["question"]
        messages = (*self._system, ChatMessage.user(question)) if self._system else ()
        return Start(Observation(question, messages=messages), {"dataset": self.spec.name, "entry": entry})

    def _score(self, hidden: Hidden, answer: str | None) -> Iterable[Signal]:
        if hidden["dataset"] != self.spec.name:
            raise InvalidAction(f"{self.spec.id}: this state belongs to reasoning_gym/{hidden['dataset']}")
        value, upstream, error = self._dataset.score(None if answer is None else answer.strip(), hidden["entry"])
        metadata: dict[str, Any] = {}
        if error is not None:
            metadata["error"] = error
        if upstream is not None:
            metadata["upstream_score"] = upstream
        signal = Signal("score", RewardType.OUTCOME, value, None, self._weight, metadata)
        return signal, self._correct if value == 1.0 else self._incorrect


def describe(name: str) -> str:
    """One line about environment `name`."""
    return "a weighted mix of other datasets" if name == COMPOSITE else DESCRIPTION[name]
