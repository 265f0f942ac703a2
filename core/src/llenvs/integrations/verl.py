"""veRL: reward functions, data sets and an agent loop (written for veRL 0.9).

Single-turn environments need no file of your own: write the data set with `make_verl_dataset` and train with

```text
reward.custom_reward_function.path=pkg://llenvs.integrations.verl
reward.custom_reward_function.name=compute_score
```

Environments of several turns run in `LLEnvsAgentLoop`. This module imports without veRL.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, UnknownOption, nearest
from llenvs.integrations.checks import names, whole
from llenvs.integrations.dataset import DatasetProvider, TaskItem
from llenvs.integrations.environment_user import takes_one_response
from llenvs.integrations.row_files import columns, file_path, hf_dataset, write_parquet
from llenvs.integrations.row_scoring import OnError, RowScorer
from llenvs.integrations.scorer_pool import IDENTITY
from llenvs.integrations.scoring import ScoringResult

if TYPE_CHECKING:
    from llenvs.integrations.verl_agent_loop import LLEnvsAgentLoop

__all__ = [
    "LLEnvsAgentLoop",
    "VerlReward",
    "acompute_score",
    "compute_score",
    "compute_score_batch",
    "make_verl_dataset",
    "make_verl_reward_fn",
]

OnVerlError = Literal["raise"] | float

AGENT_NAME = "llenvs"
"""Under which `LLEnvsAgentLoop` is registered."""


def __getattr__(name: str) -> Any:
    if name == "LLEnvsAgentLoop":
        from llenvs.integrations.verl_agent_loop import LLEnvsAgentLoop

        return LLEnvsAgentLoop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class VerlReward:
    """``compute_score`` of veRL; see `make_verl_reward_fn`. Can be pickled and called in threads."""

    def __init__(
        self,
        env: Environment[Any] | str | None = None,
        *,
        on_error: OnError = 0.0,
        retries: int = 1,
        signals: Iterable[str] = (),
        max_concurrency: int = 8,
        timeout: float | None = None,
    ) -> None:
        if on_error == "skip":
            raise InvalidOption(
                "on_error", on_error, "has no meaning in veRL, where all have a score", valid='"raise" or a number'
            )
        self._rows = RowScorer(
            env,
            on_error=on_error,
            retries=retries,
            max_concurrency=max_concurrency,
            timeout=timeout,
            agent_hook="LLEnvsAgentLoop (agent_name: llenvs)",
        )
        self._signals = names("signals", signals)
        self.__name__ = self._rows.pool.name

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        """The score of one response, in veRL's own signature.

        Args:
            data_source: of the row; not needed.
            solution_str: the response.
            ground_truth: of the row; not needed.
            extra_info: of the row: ``llenvs``, or ``task_index``.

        Returns:
            Always the same numeric keys, since veRL takes those of the first sample for all: ``score``, ``acc``
            (1.0 for success), ``llenvs_error`` (1.0 where there is no score), ``llenvs_turns``, and the signals
            that were asked for.

        Raises:
            InvalidOption: the response has several turns, whose text holds the environment's words too.
        """
        return self.batch([solution_str], [extra_info])[0]

    async def ascore(self, solution_str: str, extra_info: Mapping[str, Any] | None) -> dict[str, float]:
        """The score of one response, for callers with a loop."""
        results = await self._rows.ascore([_row(extra_info)], [solution_str])
        return self._scores(results[0])

    def batch(self, solution_strs: Sequence[str], extra_infos: Sequence[Any]) -> list[dict[str, float]]:
        """The scores of many responses."""
        results = self._rows.score([_row(extra_info) for extra_info in extra_infos], solution_strs)
        return [self._scores(result) for result in results]

    def _scores(self, result: ScoringResult) -> dict[str, float]:
        reward = self._rows.reward(result)
        assert reward is not None  # on_error is a number, or it was raised
        return {"score": reward, **extra_numbers(result, self._signals)}


def make_verl_reward_fn(
    env: Environment[Any] | str | None = None,
    *,
    on_error: OnVerlError = 0.0,
    retries: int = 1,
    signals: Iterable[str] = (),
    asynchronous: bool = False,
    max_concurrency: int = 8,
    timeout: float | None = None,
) -> Callable[..., dict[str, float]] | Callable[..., Awaitable[dict[str, float]]]:
    """A ``compute_score`` for a file of your own (``reward.custom_reward_function.path``) that scores with `env`.

    Args:
        env: a single-turn environment, or its address; None when every row has an identity, as those of
            `make_verl_dataset` have.
        on_error: for a response that could not be scored after `retries`: a number, since veRL knows no missing
            score (``llenvs_error`` is 1.0 then, and it is logged at ERROR), or "raise", which ends the run. The
            number is part of its group's mean: in `LLEnvsAgentLoop` the response is masked out at least.
        retries: how often a response that could not be scored is tried again.
        signals: names of signals to be logged, as ``llenvs/<name>`` (0.0 where a response has none).
        asynchronous: give a coroutine function, which veRL awaits; else an object that it calls in threads.
        max_concurrency: see `llenvs.integrations.Scorer`.
        timeout: seconds for one response; see `llenvs.integrations.Scorer`.

    Raises:
        InvalidOption: the environment has several turns.
    """
    reward = VerlReward(
        env,
        on_error=on_error,
        retries=retries,
        signals=signals,
        max_concurrency=max_concurrency,
        timeout=timeout,
    )
    if not asynchronous:
        return reward

    async def score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        return await reward.ascore(solution_str, extra_info)

    # veRL looks at this: the result of an object with an async __call__ would be taken for the score
    assert inspect.iscoroutinefunction(score)
    return score


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **reward_kwargs: Any,
) -> dict[str, float]:
    """The score of a row of `make_verl_dataset`; the environment is made from the row, once in each process.

    Args:
        data_source: not needed.
        solution_str: the response.
        ground_truth: not needed.
        extra_info: ``llenvs`` in it is the row's identity.
        reward_kwargs: ``on_error``, ``retries``, ``signals``, ``max_concurrency``, ``timeout`` of
            `make_verl_reward_fn`, as ``+reward.custom_reward_function.reward_kwargs.signals=[...]``; veRL's own
            (``reward_router_address`` ...) are left alone.

    Raises:
        UnknownOption: a keyword that looks like one of these.
        TaskMismatch, InvalidOption: the row is of no task, or of another version of it.
    """
    return _shared(reward_kwargs)(data_source, solution_str, ground_truth, extra_info)


async def acompute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **reward_kwargs: Any,
) -> dict[str, float]:
    """`compute_score` as a coroutine function, for environments that wait (judges, sandboxes)."""
    return await _shared(reward_kwargs).ascore(solution_str, extra_info)


def compute_score_batch(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any]],
    **reward_kwargs: Any,
) -> list[dict[str, float]]:
    """`compute_score` for veRL's `BatchRewardManager` (``verl.workers.reward_manager``).

    The reward loop of veRL 0.9 scores one sample at a time and refuses that manager: take `compute_score` there.
    """
    return _shared(reward_kwargs).batch(list(solution_strs), list(extra_infos))


def make_verl_dataset(
    env: Environment[Any] | str,
    path: str | Path | None = None,
    *,
    indices: Iterable[int] | None = None,
    system_prompt: Any = None,
    ground_truth: bool = False,
    agent_name: str | None = None,
    data_source: str | None = None,
    chunk: int = 10_000,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The tasks as rows of veRL: ``data_source``, ``prompt``, ``ability``, ``agent_name``, ``reward_model`` and
    ``extra_info`` with ``index``, ``task_index`` and ``llenvs`` (the identity).

    Args:
        env: the environment, or its address.
        path: of a Parquet file for ``data.train_files``, written `chunk` rows at a time; None gives a
            `datasets.Dataset`.
        indices: which tasks, in which order; None for all.
        system_prompt: as `llenvs.inference.prompts.make_system_prompt` takes it.
        ground_truth: whether ``reward_model.ground_truth`` holds the right answer; it is "" unless asked for.
        agent_name: the agent loop; None for ``llenvs`` where the environment has several turns, else veRL's own.
        data_source: under which veRL reports validation scores; None for the environment's address.
        chunk: rows that are held at once.
        options: of the environment, when `env` is an address.

    Returns:
        The path, or the data set.

    Raises:
        NotInstalled: `pyarrow` (of `datasets`) is missing.
        InvalidOption: the path's folder does not exist.
    """
    chunk = whole("chunk", chunk, at_least=1)
    pyarrow = columns("verl")
    provider = DatasetProvider(env, indices=indices, system_prompt=system_prompt, options=options)
    spec = provider.env.spec
    agent = agent_name or (None if takes_one_response(provider.env) else AGENT_NAME)
    schema = _schema(pyarrow, agent is not None)

    def row(item: TaskItem) -> dict[str, Any]:
        made = {
            "data_source": data_source or spec.id,
            "prompt": item.messages,
            "ability": spec.adapter,
            "reward_model": {"style": "rule", "ground_truth": (item.ground_truth or "") if ground_truth else ""},
            "extra_info": {"index": item.task_index, "task_index": item.task_index, IDENTITY: item.task_id},
        }
        return made if agent is None else {**made, "agent_name": agent}

    rows = map(row, provider)
    if path is None:
        return hf_dataset(rows, schema, chunk, "verl")
    return write_parquet(file_path(path), rows, schema, chunk)


def extra_numbers(result: ScoringResult, signals: Iterable[str] = ()) -> dict[str, float]:
    """What veRL logs beside a score: the same numeric keys for every sample, failures included.

    Those of a reward function and of `LLEnvsAgentLoop` are the same too, so that environments of one turn and of
    several can be in one batch.
    """
    numbers = {
        "acc": float(bool(result.correct)),
        "llenvs_error": float(result.error is not None),
        "llenvs_turns": float(result.metadata.get("steps", 0)),
    }
    numbers.update({f"llenvs/{name}": float(result.signals.get(name, 0.0)) for name in signals})
    return numbers


def _row(extra_info: Mapping[str, Any] | None) -> Mapping[str, Any]:
    extra_info = {} if extra_info is None else extra_info
    if not isinstance(extra_info, Mapping):
        raise InvalidOption("extra_info", extra_info, "is no mapping", valid="that of make_verl_dataset")
    turns = extra_info.get("num_turns")
    if turns is not None and whole("num_turns", turns, at_least=0) > 2:
        raise InvalidOption(
            "num_turns",
            int(turns),
            "of a response to score: its text holds more than the model's words",
            valid="2 (a prompt and an answer); episodes of several turns are scored in LLEnvsAgentLoop",
        )
    return extra_info


_OPTIONS = ("on_error", "retries", "signals", "max_concurrency", "timeout")

_made: dict[str, VerlReward] = {}
_making = Lock()  # veRL calls in threads, and an environment is to be made once


def _shared(reward_kwargs: Mapping[str, Any]) -> VerlReward:
    """The reward with these options; one for all calls of a process."""
    chosen = {name: reward_kwargs[name] for name in _OPTIONS if name in reward_kwargs}
    for name in reward_kwargs.keys() - set(_OPTIONS):
        if nearest(name, _OPTIONS):  # veRL's own, which come along, are called otherwise
            raise UnknownOption(name, _OPTIONS)
    if "signals" in chosen:
        chosen["signals"] = names("signals", chosen["signals"])
    key = repr(sorted(chosen.items()))
    with _making:
        if key not in _made:
            _made[key] = VerlReward(None, **chosen)
        return _made[key]


def _schema(pyarrow: Any, with_agent: bool) -> Any:
    text = pyarrow.string()
    message = pyarrow.struct([("role", text), ("content", text)])
    extra = pyarrow.struct([("index", pyarrow.int64()), ("task_index", pyarrow.int64()), (IDENTITY, text)])
    columns = [
        ("data_source", text),
        ("prompt", pyarrow.list_(message)),
        ("ability", text),
        ("reward_model", pyarrow.struct([("style", text), ("ground_truth", text)])),
        ("extra_info", extra),
    ]
    return pyarrow.schema([*columns, *([("agent_name", text)] if with_agent else [])])
