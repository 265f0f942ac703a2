"""TRL: rewards, data sets, environments and rollouts for `GRPOTrainer` (written for TRL 1.16).

| the environment has | give the trainer |
|---|---|
| one turn | `make_trl_reward_fn` |
| several turns, ended by the environment, and acts by tools or short commands | `make_trl_environment` |
| several turns, any kind | `make_trl_rollout_fn` |

```python
from trl import GRPOConfig, GRPOTrainer
import llenvs
from llenvs.integrations.trl import make_trl_dataset, make_trl_reward_fn

env = llenvs.make("reasoning_gym/leg_counting", size=1000)
trainer = GRPOTrainer(model="Qwen/Qwen3-0.6B", reward_funcs=make_trl_reward_fn(env),
                      train_dataset=make_trl_dataset(env), args=GRPOConfig(...))
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.integrations.completion_text import last_answer
from llenvs.integrations.dataset import DatasetProvider
from llenvs.integrations.row_scoring import OnError, RowScorer
from llenvs.integrations.scorer_pool import IDENTITY
from llenvs.integrations.trl_environment import TRLEnvironment, TRLEnvironmentFactory, make_trl_environment
from llenvs.integrations.trl_rollout import TRLRollout, make_trl_rollout_fn

__all__ = [
    "TRLEnvironment",
    "TRLEnvironmentFactory",
    "TRLReward",
    "TRLRollout",
    "make_trl_dataset",
    "make_trl_environment",
    "make_trl_reward_fn",
    "make_trl_rollout_fn",
]


class TRLReward:
    """A reward function for `GRPOTrainer` and its kin; see `make_trl_reward_fn`."""

    def __init__(self, env: Environment[Any] | str | None = None, **options: Any) -> None:
        self._rows = RowScorer(env, agent_hook="make_trl_environment or make_trl_rollout_fn", **options)
        # the trainer logs the reward under this name
        self.__name__ = self._rows.pool.name

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        *,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward per completion; None where the environment failed.

        Args:
            prompts: of each completion (each prompt as often as there are generations of it).
            completions: texts, or lists of messages.
            log_metric: TRL's, for the mean of each signal.
            columns: the data set's other columns; ``llenvs`` or ``task_index`` is needed.

        Raises:
            TaskMismatch, TaskIndexOutOfRange, InvalidOption: a row is of no task, or of another version of it.
            NotScored: the environment failed, and ``on_error`` is "raise".
        """
        rows = _rows(columns, len(completions))
        results = self._rows.score(rows, [last_answer(completion) for completion in completions])
        if log_metric is not None and results:
            for name, value in _means(results):
                log_metric(name, value)
        return [self._rows.reward(result) for result in results]


def _rows(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """What tells the task of each completion."""
    given = {name: columns[name] for name in (IDENTITY, "task_index") if columns.get(name) is not None}
    for name, column in given.items():
        if not isinstance(column, Sequence) or isinstance(column, str) or len(column) != count:
            raise InvalidOption(name, column, f"must be a list, of one for each of the {count} completions")
    return [{name: column[number] for name, column in given.items()} for number in range(count)]


def make_trl_reward_fn(
    env: Environment[Any] | str | None = None,
    *,
    on_error: OnError = "skip",
    retries: int = 1,
    max_concurrency: int = 8,
    timeout: float | None = None,
) -> TRLReward:
    """The reward of a single-turn environment as a reward function: an object that can be pickled, so that
    asynchronous trainers can call it in a worker.

    Its value is `SignalBundle.total`. The signals are logged as ``llenvs/<name>``, with the share of completions
    that could not be scored as ``llenvs/error``.

    Args:
        env: the environment; None when every row has an identity, as those of `make_trl_dataset` have, so that one
            data set can mix environments.
        on_error: for a completion that the environment could not score. "skip" gives None, which TRL leaves out of
            the group's mean as long as no other reward function gives a number for it: with a second reward
            function (a constant format reward, say) TRL counts None as 0.
        retries: how often a completion that could not be scored is tried again first.
        max_concurrency: see `llenvs.integrations.Scorer`.
        timeout: seconds for one completion; see `llenvs.integrations.Scorer`.

    Raises:
        InvalidOption: the environment has several turns.
    """
    return TRLReward(env, on_error=on_error, retries=retries, max_concurrency=max_concurrency, timeout=timeout)


def make_trl_dataset(
    env: Environment[Any] | str,
    *,
    indices: Iterable[int] | None = None,
    system_prompt: Any = None,
    ground_truth: bool = False,
    streaming: bool = False,
    identity_in_prompt: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The tasks as a `datasets.Dataset` with the columns ``prompt`` (messages), ``task_index`` and ``llenvs``.

    Args:
        env: the environment, or its address.
        indices: which tasks, in which order; None for all.
        system_prompt: as `llenvs.inference.prompts.make_system_prompt` takes it.
        ground_truth: whether the right answer is a column; see `DatasetProvider.to_hf_dataset`.
        streaming: an `IterableDataset` that makes rows as they are read (the trainer needs ``max_steps`` then).
        identity_in_prompt: repeat the identity as the key ``llenvs`` of the last message, for
            `make_trl_rollout_fn`, to which TRL hands prompts alone. Chat templates look at ``role`` and
            ``content`` only.
        options: of the environment, when `env` is an address.
    """
    provider = DatasetProvider(env, indices=indices, system_prompt=system_prompt, options=options)
    dataset = provider.to_hf_dataset(ground_truth=ground_truth, streaming=streaming)
    return _with_identity(dataset, streaming) if identity_in_prompt else dataset


def _with_identity(dataset: Any, streaming: bool) -> Any:
    """The data set with `IDENTITY` in the last message of each prompt."""
    import datasets
    import pyarrow

    schema = dataset.features.arrow_schema
    message = pyarrow.struct([(name, pyarrow.string()) for name in ("role", "content", IDENTITY)])
    schema = schema.set(schema.get_field_index("prompt"), pyarrow.field("prompt", pyarrow.list_(message)))
    if streaming:
        return dataset.map(_identified, features=datasets.Features.from_arrow_schema(schema))
    batches = [
        pyarrow.RecordBatch.from_pylist([{**row, **_identified(row)} for row in batch.to_pylist()], schema=schema)
        for batch in dataset.data.table.to_batches()
    ]
    return datasets.Dataset(pyarrow.Table.from_batches(batches, schema=schema))


def _identified(row: Mapping[str, Any]) -> dict[str, Any]:
    *before, last = row["prompt"]
    return {"prompt": [*({**each, IDENTITY: None} for each in before), {**last, IDENTITY: row[IDENTITY]}]}


def _means(results: Sequence[Any]) -> list[tuple[str, float]]:
    """Means of the signals over the completions that have them, and the share of failures."""
    values: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.signals.items():
            values.setdefault(name, []).append(value)
    failures = sum(result.error is not None for result in results) / len(results)
    means = [(f"llenvs/{name}", sum(each) / len(each)) for name, each in values.items()]
    return [*means, ("llenvs/error", failures)]
