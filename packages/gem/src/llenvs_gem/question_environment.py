"""Questions as environments: one answer, the upstream's grade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from llenvs.core.environment import EnvironmentSpec, Start
from llenvs.core.errors import InvalidAction, LLEnvsError, UpstreamFailed
from llenvs.core.extraction import make_extractor
from llenvs.core.observation import Observation
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.single_turn import SingleTurnEnvironment
from llenvs_gem.answers import native_extraction
from llenvs_gem.catalogue import Entry, Kind
from llenvs_gem.items import Item, Items, ReasoningItems, RowItems
from llenvs_gem.judges import BadTruth, CodeJudge, Judge, MathJudge, QAJudge, ReasoningJudge, Verdict
from llenvs_gem.options import CodeOptions, DatasetOptions, QuestionOptions, ReasoningOptions
from llenvs_gem.upstream import version


class Hidden(TypedDict):
    """Hidden state: the environment's id and the ground truth of its item (an answer, tests, an entry)."""

    environment: str
    truth: Any


class GemQuestionEnvironment(SingleTurnEnvironment[Hidden]):
    """One data set: task i is its row i.

    Signals: `reward`, the upstream's own value (weight 1), with ``metadata["error"]`` when the answer could not be
    judged, and `success`, 1.0 where the answer is right, else 0.0 (weight 0); it decides success.
    """

    def __init__(self, entry: Entry, options: QuestionOptions) -> None:
        spec = EnvironmentSpec(
            entry.id,
            "gem",
            deterministic=entry.kind is not Kind.CODE,  # a program may draw lots
            supports_images="image_key" in entry.settings,
            success_signal="success",
            description=entry.description,
            metadata=question_metadata(entry, options),
        )
        extractor = make_extractor(options.answer_extractor).bind(native_extraction(entry.kind))
        super().__init__(spec, extractor, reward_functions=make_reward_functions(options.extra_rewards))
        self._questions = Questions(entry, options)

    @property
    def num_tasks(self) -> int:
        """Rows of the data set, or the option `size`."""
        return len(self._questions)

    def close(self) -> None:
        """Let the workers go."""
        self._questions.close()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        item = self._questions.item(task_index)
        return Start(Observation(item.question, images=item.images), self._questions.hidden(item))

    def _score(self, hidden: Hidden, answer: str | None) -> Iterable[Signal]:
        return outcome(self._questions.judge(hidden, answer))


class Questions:
    """Items and their judge: what environments of questions share, with tools and without."""

    def __init__(self, entry: Entry, options: QuestionOptions) -> None:
        self._id = entry.id
        self._items, self._judge = _items_and_judge(entry, options)
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Item:
        """Question `index`.

        Raises:
            InvalidOption, UpstreamFailed: the item cannot be read, or its ground truth is of no use.
        """
        item = self._items.item(index)
        try:
            self._judge.check(item.truth)
        except BadTruth as bad:
            raise UpstreamFailed(f"gem/{self._id}", f"reading item {index}", str(bad)) from None
        return item

    def hidden(self, item: Item) -> Hidden:
        """The hidden state of an episode with this item."""
        return {"environment": self._id, "truth": item.truth}

    def judge(self, hidden: Mapping[str, Any], answer: str | None) -> Verdict:
        """What `answer` is worth.

        Raises:
            InvalidAction: the state belongs to another environment.
            UpstreamFailed: the grader failed over something else than the answer.
        """
        if hidden.get("environment") != self._id:
            raise InvalidAction(f"gem/{self._id}: this state belongs to gem/{hidden.get('environment')}")
        try:
            return self._judge.judge(answer, hidden["truth"])
        except LLEnvsError:
            raise
        except Exception as error:
            raise UpstreamFailed(f"gem/{self._id}", "judging an answer", error) from error

    def close(self) -> None:
        """Let the workers go; twice is fine."""
        if not self._closed:
            self._closed = True
            self._items.close()
            self._judge.close()


def outcome(verdict: Verdict) -> tuple[Signal, Signal]:
    """The signals of a judged answer."""
    metadata = {} if verdict.error is None else {"error": verdict.error}
    return (
        Signal("reward", RewardType.OUTCOME, verdict.reward, None, 1.0, metadata),
        Signal("success", RewardType.OUTCOME, float(verdict.correct), None, 0.0),
    )


def question_metadata(entry: Entry, options: QuestionOptions) -> dict[str, Any]:
    """What identifies the tasks."""
    metadata: dict[str, Any] = {"gem": version(), "kind": str(entry.kind)}
    if isinstance(options, ReasoningOptions):
        metadata |= {"size": options.size, "seed": options.seed}
    elif isinstance(options, DatasetOptions):
        source = entry.settings["dataset"] if options.dataset is None else "given"
        metadata |= {"dataset": source, "split": options.split or entry.settings["split"]}
    return metadata


def _items_and_judge(entry: Entry, options: QuestionOptions) -> tuple[Items, Judge]:
    environment = f"gem/{entry.id}"
    if isinstance(options, ReasoningOptions):
        items = ReasoningItems(entry, options)
        return items, ReasoningJudge(environment, items.recipe, options.time_limit)
    assert isinstance(options, DatasetOptions)
    rows = RowItems(entry, options)
    if isinstance(options, CodeOptions):
        return rows, CodeJudge(
            environment,
            time_limit=options.time_limit,
            memory_limit=options.memory_limit,
            max_tests=options.max_tests,
            max_workers=options.max_workers,
        )
    if entry.kind is Kind.MATH:
        return rows, MathJudge(environment, options.time_limit)
    return rows, QAJudge(environment)
