"""The tasks of an environment as a data set of prompts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, NotInstalled, TaskIndexOutOfRange
from llenvs.core.message import ChatMessage
from llenvs.core.state import State
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.prompting import prompt_builder
from llenvs.inference.prompts import PromptBuilder, PromptSpec
from llenvs.integrations import checks
from llenvs.integrations.environment_user import EnvironmentUser, configured_environment
from llenvs.integrations.row_files import columns, file_path, hf_dataset, write_parquet
from llenvs.integrations.task_identity import (
    TaskIdentity,
    environment_origin,
    identity_line,
    identity_tail,
    prompt_sha256,
)

_CHUNK = 10_000


class TaskItem:
    """One task. All but the prompt is made when it is asked for.

    Attributes:
        task_index: which task.
        state: its first state.
    """

    def __init__(self, provider: DatasetProvider, task_index: int, state: State[Any]) -> None:
        self._provider = provider
        self.task_index = task_index
        self.state = state

    @property
    def prompt(self) -> str:
        """The task's text, without what a prompt builder adds."""
        observation = self.state.observation
        task, prompt = observation.task, observation.prompt
        if not task or task in prompt:
            return prompt
        return f"{task}\n\n{prompt}" if prompt else task

    @property
    def chat(self) -> tuple[ChatMessage, ...]:
        """The messages to send: the task, and the system prompt and layout that the provider was given."""
        conversation = Conversation(self._provider.builder)
        conversation.observe(self.state.observation)
        return conversation.messages()

    @property
    def messages(self) -> list[dict[str, str]]:
        """`chat` as trainers take it: mappings of ``role`` and ``content``.

        Raises:
            InvalidOption: it shows images, which these mappings cannot hold.
        """
        observation = self.state.observation
        if self._provider.adds_nothing and not observation.messages and not observation.images:
            return [{"role": "user", "content": self.prompt}]  # what `chat` gives then, without its work
        chat = self.chat
        if any(message.images for message in chat):
            raise InvalidOption(
                "env", self._provider.env.spec.id, "shows images, and rows for trainers carry text alone"
            )
        return [{"role": message.role, "content": message.content} for message in chat]

    @property
    def ground_truth(self) -> str | None:
        """The right answer as text, where there is one; see `Environment.ground_truth`."""
        return self._provider.env.ground_truth(self.state)

    @property
    def identity(self) -> TaskIdentity:
        """Which task it is, so that a scorer elsewhere can make it and check that it is the same."""
        address, options = self._provider.origin
        return TaskIdentity(
            address, self.task_index, prompt_sha256(self.state.observation), options, self._provider.seed
        )

    @property
    def task_id(self) -> str:
        """`identity` as one line of JSON."""
        digest = prompt_sha256(self.state.observation)
        return identity_line(self.task_index, digest, self._provider.identity_tail)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the environment tells about the task (``task_index``, ``seed``, ...)."""
        return self.state.metadata.info

    def row(self, *, ground_truth: bool = False) -> dict[str, Any]:
        """The row of a data set: ``prompt`` (messages), ``task_index``, ``llenvs`` (the identity), and
        ``ground_truth`` if asked for."""
        row: dict[str, Any] = {
            "prompt": self.messages,
            "task_index": self.task_index,
            "llenvs": self.task_id,
        }
        if ground_truth:
            row["ground_truth"] = self.ground_truth
        return row

    def __repr__(self) -> str:
        return f"<TaskItem {self._provider.env.spec.id}#{self.task_index}: {self.prompt[:60]!r}>"


class DatasetProvider(EnvironmentUser, Sequence[TaskItem]):
    """The tasks of an environment, made when they are asked for.

    A slice is a provider of those tasks. Iterating holds one task at a time.

    Args:
        env: an environment, or its address ``adapter/name``; then this object closes it.
        indices: which tasks, in which order; None for all. A train or test side of `split_tasks` fits here.
        seed: what episodes are reset with.
        system_prompt: as `llenvs.inference.prompts.make_system_prompt` takes it.
        prompt: as `llenvs.inference.prompts.make_prompt` takes it.
        options: of the environment, when `env` is an address.

    Raises:
        TaskIndexOutOfRange: an index that is no task.
    """

    def __init__(
        self,
        env: Environment[Any] | str,
        *,
        indices: Iterable[int] | None = None,
        seed: int = 0,
        system_prompt: Any = None,
        prompt: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(env, options)
        size = len(self.env)
        self.indices: Sequence[int] = range(size) if indices is None else _checked(indices, size, self.env.spec.id)
        self.seed = seed
        self.builder: PromptBuilder = prompt_builder("", system_prompt, prompt)

    @classmethod
    def from_config(cls, config: Any, **options: Any) -> DatasetProvider:
        """The tasks of one environment of a configuration.

        Args:
            config: as an entry of ``environments:`` in a YAML (a mapping or an `EnvironmentConfig`). Its
                `task_indices` or `num_tasks` choose the tasks, its `system_prompt` is used.
            options: of the provider.
        """
        environment, parsed = configured_environment(config)
        chosen: Iterable[int] | None = parsed.task_indices
        if chosen is None and parsed.num_tasks is not None:
            chosen = range(min(parsed.num_tasks, len(environment)))
        provider = cls(environment, **{"indices": chosen, "system_prompt": parsed.system_prompt, **options})
        provider._owned = True
        return provider

    @cached_property
    def origin(self) -> tuple[str, dict[str, Any]]:
        """Address and options of the environment."""
        return environment_origin(self.env)

    @cached_property
    def identity_tail(self) -> str:
        """What the identities of all tasks have in common, as JSON."""
        return identity_tail(*self.origin, self.seed)

    @cached_property
    def adds_nothing(self) -> bool:
        """Whether the task itself is all that is sent: no system prompt, examples or layout."""
        return self.builder.spec == PromptSpec()

    # -- a sequence ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> TaskItem: ...
    @overload
    def __getitem__(self, index: slice) -> DatasetProvider: ...
    def __getitem__(self, index: int | slice) -> TaskItem | DatasetProvider:
        if isinstance(index, slice):
            return DatasetProvider(self.env, indices=self.indices[index], seed=self.seed, prompt=self.builder)
        return self._item(self.indices[index])

    def __iter__(self) -> Iterator[TaskItem]:
        return map(self._item, self.indices)

    def get_items(self, indices: Iterable[int] | None = None) -> list[TaskItem]:
        """The items at these positions; None: all."""
        return list(self) if indices is None else [self[index] for index in indices]

    def _item(self, task_index: int) -> TaskItem:
        return TaskItem(self, task_index, self.env.reset(seed=self.seed, options={"task_index": task_index})[0])

    # -- for trainers -------------------------------------------------------------------------------------

    def rows(self, *, ground_truth: bool = False) -> Iterator[dict[str, Any]]:
        """`TaskItem.row` of each task."""
        for item in self:
            yield item.row(ground_truth=ground_truth)

    def to_hf_dataset(self, *, ground_truth: bool = False, streaming: bool = False) -> Any:
        """A `datasets.Dataset`, or with `streaming` a `datasets.IterableDataset` that makes rows as they are read.

        Args:
            ground_truth: whether the right answer is a column. A trainer may feed any column to the model's
                template, so it is left out unless asked for; the scorer does not need it.
            streaming: nothing is made in advance and nothing is cached.

        Raises:
            NotInstalled: `datasets` is missing.
        """
        if streaming:
            try:
                import datasets
            except ImportError:
                raise NotInstalled("the library `datasets`", "trl") from None
            # a generator function is hashed with what it closes over, and an environment cannot be: no cache
            return datasets.IterableDataset.from_generator(
                _Rows(self, ground_truth), features=datasets.Features.from_arrow_schema(_schema(ground_truth))
            )
        return hf_dataset(self.rows(ground_truth=ground_truth), _schema(ground_truth), _CHUNK, "trl")

    def to_parquet(self, path: str | Path, *, ground_truth: bool = False, chunk: int = _CHUNK) -> Path:
        """Write the rows to a Parquet file, `chunk` at a time.

        Raises:
            NotInstalled: `pyarrow` (of `datasets`) is missing.
            InvalidOption: the folder of `path` does not exist, or `chunk` is no whole number, at least 1.
        """
        chunk = checks.whole("chunk", chunk, at_least=1)
        rows = self.rows(ground_truth=ground_truth)
        return write_parquet(file_path(path), rows, _schema(ground_truth), chunk)

    # -- the rest -----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<DatasetProvider {self.env.spec.id}, {len(self)} tasks>"


class _Rows:
    """The rows of a provider, as `datasets` wants a generator function that it can hash and begin anew."""

    def __init__(self, provider: DatasetProvider, ground_truth: bool) -> None:
        self._provider = provider
        self._ground_truth = ground_truth

    def __call__(self) -> Iterator[dict[str, Any]]:
        return self._provider.rows(ground_truth=self._ground_truth)

    def __reduce__(self) -> Any:
        made = (*self._provider.origin, tuple(self._provider.indices))
        return _rebuilt, (*made, self._provider.seed, self._provider.builder, self._ground_truth)


def _rebuilt(
    address: str,
    options: dict[str, Any],
    indices: tuple[int, ...],
    seed: int,
    builder: PromptBuilder,
    ground_truth: bool,
) -> _Rows:
    """In another process (a data loader's worker): the environment is made there."""
    provider = DatasetProvider(address, options=options, indices=indices, seed=seed, prompt=builder)
    return _Rows(provider, ground_truth)


def _checked(indices: Iterable[int], size: int, environment: str) -> tuple[int, ...]:
    """`indices` as ints (numpy's are taken too) of tasks that there are."""
    if isinstance(indices, str) or not isinstance(indices, Iterable):
        raise InvalidOption("indices", indices, "must be a list of whole numbers, or None for all tasks")
    chosen = []
    for index in indices:
        if isinstance(index, bool) or not hasattr(index, "__index__") or not 0 <= operator.index(index) < size:
            raise TaskIndexOutOfRange(index, size, environment)
        chosen.append(operator.index(index))
    return tuple(chosen)


def _schema(ground_truth: bool) -> Any:
    pyarrow = columns("trl")
    message = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
    fields = [
        ("prompt", pyarrow.list_(message)),
        ("task_index", pyarrow.int64()),
        ("llenvs", pyarrow.string()),
    ]
    return pyarrow.schema([*fields, *([("ground_truth", pyarrow.string())] if ground_truth else [])])
