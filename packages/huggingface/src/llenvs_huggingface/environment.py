"""The environment: a question of a row, an answer, a score."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from llenvs.core.action import Action
from llenvs.core.environment import Advance, EnvironmentSpec, Start
from llenvs.core.errors import InvalidAction, InvalidOption, LLEnvsError, UpstreamFailed
from llenvs.core.extraction import CompositeExtractor, Extractor, MultipleChoiceExtractor, make_extractor
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.observation import Observation
from llenvs.core.rewards import make_reward_functions
from llenvs.core.signals import RewardType, Signal
from llenvs.core.single_turn import SingleTurnEnvironment
from llenvs.core.state import State
from llenvs_huggingface.choices import LETTERS, shown_order
from llenvs_huggingface.columns import cell, check_column
from llenvs_huggingface.images import images_of, without_bytes
from llenvs_huggingface.item import Item, Row
from llenvs_huggingface.loading import load_rows
from llenvs_huggingface.options import HuggingFaceOptions
from llenvs_huggingface.presets import Preset
from llenvs_huggingface.presets.preset import CHOICE_ANSWER, TEXT_ANSWER
from llenvs_huggingface.prompt import check_template, default_prompt, filled
from llenvs_huggingface.readers import reader_for
from llenvs_huggingface.scoring import Scorer, make_scorer
from llenvs_huggingface.scoring.math import MathScorer
from llenvs_huggingface.scoring.program import ProgramScorer

_TIMED: tuple[type[Any], ...] = (MathScorer, ProgramScorer)


class Hidden(TypedDict):
    """Hidden state: the row, ground truth included.

    `dataset_name`, `subset`, `split` and `revision` say where the row comes from (see `sources.rows.Origin`),
    `row_index` which row it is there, `task_index` which task here. `row` is the row itself, with the number of
    bytes and the hash in place of binary cells. `expected_answer` is what the scorer compares with, for multiple
    choice the letter; `choices` are the options in the order shown, [] for any other question.
    """

    dataset_name: str
    subset: str | None
    split: str | None
    revision: str | None
    row_index: int
    task_index: int
    row: dict[str, Any]
    expected_answer: Any
    choices: list[str]


class HuggingFaceEnvironment(SingleTurnEnvironment[Hidden]):
    """One data set: task i is its row i, after shuffling and cutting.

    Signals: `correctness`, 1.0 or 0.0 (or what a scoring function gives); it decides success. Scorers with a
    graded value (f1, closest) report that under its own name with weight 1, and `correctness` with weight 0. When
    an answer could not be judged, `correctness` is 0.0 with ``metadata["error"]``.
    """

    def __init__(self, name: str, repository: str, preset: Preset | None, options: HuggingFaceOptions) -> None:
        self._rows = load_rows(repository, preset, options)
        columns = self._rows.columns
        self._read = reader_for(preset, options, columns)
        self._image_columns = _image_columns(options, columns)
        self._template = options.prompt_template
        if self._template is not None:
            check_template(self._template, columns)
        self._system = () if options.system_prompt is None else (ChatMessage.system(options.system_prompt),)
        self._seed = options.seed or 0
        shuffle = options.shuffle_choices
        self._shuffle = shuffle if shuffle is not None else preset is not None and preset.shuffle_choices
        first = self._item_of(name, 0)
        spec_of_scorer = (
            options.scoring if options.scoring is not None else _default_scoring(preset, options, first)
        )
        self.scorer = _timed(make_scorer(spec_of_scorer), options.time_limit)
        if isinstance(self.scorer, ProgramScorer) and not options.allow_code_execution:
            raise InvalidOption(
                "allow_code_execution",
                False,
                f"{name} is judged by running the programs that the model writes, in processes with limits but "
                f"with "
                "your user's access to files; allow it, best with container='docker' around the environment",
                valid="true",
            )
        problem = self._problem(first)
        if problem is not None:
            self.scorer.close()
            raise InvalidOption("scoring", self.scorer.name, f"does not suit row 0: {problem}")
        extractor = options.answer_extractor if options.answer_extractor is not None else _chain(preset, first)
        origin = self._rows.origin(0)
        spec = EnvironmentSpec(
            name,
            "huggingface",
            deterministic=not isinstance(self.scorer, ProgramScorer),
            supports_images=bool(self._image_columns),
            success_signal="correctness",
            description=preset.description if preset else f"data set {origin.name}",
            metadata={
                **origin._asdict(),
                "rows": len(self._rows),
                "size": options.size,
                "seed": options.seed,
                "scoring": self.scorer.name,
                "shuffle_choices": self._shuffle,
            },
        )
        super().__init__(
            spec,
            make_extractor(list(extractor) if isinstance(extractor, tuple) else extractor),
            reward_functions=make_reward_functions(options.extra_rewards),
        )
        self._lettered: tuple[str, str, str | None] = ("", "", None)

    @property
    def num_tasks(self) -> int:
        """Rows chosen."""
        return len(self._rows)

    def close(self) -> None:
        """Let the worker processes of the scorer go."""
        self.scorer.close()

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        name = self.spec.id
        row = self._rows.row(task_index)
        item = self._item_of(name, task_index)
        problem = self._problem(item)
        if problem is not None:
            raise UpstreamFailed(name, f"reading row {task_index}", problem)
        shown, expected = self._shown(item)
        if self._template is None:
            prompt = default_prompt(item, shown)
        else:
            prompt = filled(self._template, item, shown, row)
        images = self._images(name, task_index, row)
        origin = self._rows.origin(task_index)
        hidden: Hidden = {
            "dataset_name": origin.name,
            "subset": origin.subset,
            "split": origin.split,
            "revision": origin.revision,
            "row_index": self._rows.number(task_index),
            "task_index": task_index,
            "row": without_bytes(row),
            "expected_answer": expected,
            "choices": list(shown),
        }
        messages = (*self._system, ChatMessage.user(prompt, images)) if self._system else ()
        return Start(Observation(prompt, messages=messages, images=images), hidden)

    def _advance(self, state: State[Hidden], action: Action) -> Advance:
        answer = self._answer_to(state.hidden, action.text)
        resolved = None if answer is None else Action(answer)
        return Advance(
            Observation(), state.hidden, terminated=True, resolved_action=resolved, info={"answer": answer}
        )

    def _signals(self, state: State[Hidden], action: Action, next_state: State[Hidden]) -> Iterable[Signal]:
        return self._score(state.hidden, self._answer_to(state.hidden, action.text))

    def _score(self, hidden: Hidden, answer: str | None) -> Iterable[Signal]:
        problem = self.scorer.check(hidden["expected_answer"])
        if problem is not None:
            raise InvalidAction(f"{self.spec.id}: this state is of another environment ({problem})")
        graded = self.scorer.graded_signal
        value, similarity, error = 0.0, 0.0, None
        if answer is not None:
            try:
                score = self.scorer.score(answer, hidden["expected_answer"], hidden["choices"])
            except LLEnvsError:
                raise
            except Exception as failure:  # a scoring function of the user's may raise anything
                raise UpstreamFailed(self.spec.id, f"scoring with {self.scorer.name}", failure) from failure
            value, similarity, error = score.value, score.similarity or 0.0, score.error
        metadata = {} if error is None else {"error": error}
        weight = 1.0 if graded is None else 0.0
        correctness = Signal("correctness", RewardType.OUTCOME, value, None, weight, metadata)
        if graded is None:
            return (correctness,)
        return Signal(graded, RewardType.OUTCOME, similarity), correctness

    def _answer_to(self, hidden: Hidden, text: str) -> str | None:
        """The answer in a response; letters are looked for among those of the question."""
        if not isinstance(hidden, Mapping) or not {"expected_answer", "choices"} <= set(hidden):
            raise InvalidAction(f"{self.spec.id}: this state is of another environment")
        choices = hidden["choices"]
        if not isinstance(choices, list | tuple) or not all(isinstance(choice, str) for choice in choices):
            raise InvalidAction(f"{self.spec.id}: this state's options are no list of texts")
        letters = LETTERS[: len(choices)]
        if not letters:
            return self._answer(text)
        last, of, answer = self._lettered  # the last one is kept, as in `_answer`
        if last is not text or of != letters:
            answer = _with_letters(self.extractor, letters).extract(text)
            self._lettered = (text, letters, answer)
        return answer

    def _item_of(self, name: str, index: int) -> Item:
        try:
            return self._read(self._rows.row(index))
        except LLEnvsError:
            raise
        except Exception as error:  # noqa: BLE001 - a row may hold, and a function of the user's raise, anything
            said = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise UpstreamFailed(name, f"reading row {index}", said) from None

    def _problem(self, item: Item) -> str | None:
        """Why the scorer cannot judge answers to `item`; None when it can."""
        if self.scorer.needs_choices and item.choices is None:
            return f"{self.scorer.name} needs the options of the question: give choices_column"
        return self.scorer.check(self._shown(item)[1])

    def _shown(self, item: Item) -> tuple[tuple[str, ...], Any]:
        """The options as shown, and what is expected: the letter, or the option's text for scorers of texts."""
        if item.choices is None:
            return (), item.expected
        order: Sequence[int] = range(len(item.choices))
        if self._shuffle:
            order = shown_order(self._seed, item.question, item.choices)
        shown = tuple(item.choices[index] for index in order)
        place = list(order).index(item.expected)
        return shown, LETTERS[place] if self.scorer.needs_choices else shown[place]

    def _images(self, name: str, index: int, row: Row) -> tuple[ImageContent, ...]:
        try:
            return tuple(image for column in self._image_columns for image in images_of(cell(row, column)))
        except ValueError as error:
            raise UpstreamFailed(name, f"reading the image of row {index}", error) from None


@functools.lru_cache(maxsize=256)
def _with_letters(extractor: Extractor, letters: str) -> Extractor:
    """`extractor` looking for `letters` wherever `multiple_choice` stands in it with its usual ones."""
    if isinstance(extractor, MultipleChoiceExtractor):
        usual = type(extractor)().choices
        return extractor.replace(choices=letters) if extractor.choices == usual else extractor
    if isinstance(extractor, CompositeExtractor):
        return extractor.replace(extractors=tuple(_with_letters(each, letters) for each in extractor.extractors))
    return extractor


def _timed(scorer: Scorer, limit: float | None) -> Scorer:
    """`scorer` with the option `time_limit`, where it has one."""
    if limit is None or not isinstance(scorer, _TIMED):
        return scorer
    timed: Scorer = dataclasses.replace(scorer, time_limit=limit)
    scorer.close()
    return timed


def _default_scoring(preset: Preset | None, options: HuggingFaceOptions, item: Item) -> Any:
    if preset is not None and (options.answer_column is None or item.choices is not None):
        return preset.scoring
    if item.choices is not None:
        return "choice"
    return "any_of" if isinstance(item.expected, list) else "exact"


def _chain(preset: Preset | None, item: Item) -> Any:
    if preset is not None:
        return preset.extractor
    return CHOICE_ANSWER if item.choices is not None else TEXT_ANSWER


def _image_columns(options: HuggingFaceOptions, columns: Sequence[str]) -> tuple[str, ...]:
    wanted = options.image_column
    if wanted is None:
        return ()
    named = [wanted] if isinstance(wanted, str) else wanted
    return tuple(check_column("image_column", column, columns) for column in named)
