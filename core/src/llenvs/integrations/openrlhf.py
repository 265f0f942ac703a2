"""OpenRLHF: reward functions, agent executors and data sets (written for OpenRLHF 0.11).

OpenRLHF reads both from a Python file of yours. For single-turn environments ``--reward.remote_url reward.py``
with

```python
from llenvs.integrations.openrlhf import make_openrlhf_reward_fn

reward_func = make_openrlhf_reward_fn()
```

and for environments of several turns ``--train.agent_func_path agent.py`` with

```python
from llenvs.integrations.openrlhf import make_openrlhf_agent_executor

AgentExecutor = make_openrlhf_agent_executor()
```

Both score the rows of `make_openrlhf_dataset`, whose column ``label`` is the identity of the task:
``--data.input_key prompt --data.label_key label --data.apply_chat_template``. This module imports without
OpenRLHF.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, NotInstalled
from llenvs.integrations.checks import names, whole
from llenvs.integrations.control_text import END_OF_TURN, without_end
from llenvs.integrations.dataset import DatasetProvider
from llenvs.integrations.row_files import columns, file_path, hf_dataset, write_lines, write_parquet
from llenvs.integrations.row_scoring import NotScored, OnError, RowScorer
from llenvs.integrations.scorer_pool import IDENTITY

__all__ = [
    "OpenRLHFReward",
    "make_openrlhf_agent_executor",
    "make_openrlhf_dataset",
    "make_openrlhf_reward_fn",
]

_log = logging.getLogger("llenvs.integrations")


class OpenRLHFReward:
    """``reward_func`` of OpenRLHF; see `make_openrlhf_reward_fn`. Can be pickled and called in threads."""

    def __init__(
        self,
        env: Environment[Any] | str | None = None,
        *,
        on_error: OnError = "raise",
        retries: int = 1,
        end_of_turn: Sequence[str] = END_OF_TURN,
        max_concurrency: int = 8,
        timeout: float | None = None,
    ) -> None:
        if on_error == "skip":
            raise InvalidOption(
                "on_error",
                on_error,
                "has no meaning in OpenRLHF, where all have a reward",
                valid='"raise", a number',
            )
        self._rows = RowScorer(
            env,
            on_error=on_error,
            retries=retries,
            max_concurrency=max_concurrency,
            timeout=timeout,
            agent_hook="make_openrlhf_agent_executor",
        )
        self._ends = names("end_of_turn", end_of_turn)
        self.__name__ = self._rows.pool.name

    def __call__(self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
        """Rewards in OpenRLHF's own form.

        Args:
            queries: prompt and response as one text, control tokens written out.
            prompts: of each.
            labels: of each: the identity (JSON), or a task's index.

        Returns:
            ``rewards`` and ``scores``: 1-d float tensors of as many, and ``extra_logs``: of the same shape.

        Raises:
            NotScored, TaskMismatch, InvalidOption: also logged at ERROR, since OpenRLHF goes on without a word and
                ends later, of something else.
        """
        import torch

        try:
            if isinstance(queries, str) or not len(queries) == len(prompts) == len(labels):
                raise InvalidOption("queries", queries, "must be a list, as long as prompts and labels")
            responses = [self.response(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
            results = self._rows.score([row_of(label) for label in labels], responses)
        except NotScored:
            raise  # logged already
        except Exception as error:
            _log.error("reward_func: %s: %s", type(error).__name__, error)
            raise
        rewards = torch.tensor([self._rows.reward(result) for result in results], dtype=torch.float32)
        logs = {
            "llenvs_correct": torch.tensor([float(bool(result.correct)) for result in results]),
            "llenvs_error": torch.tensor([float(result.error is not None) for result in results]),
        }
        return {"rewards": rewards, "scores": rewards.clone(), "extra_logs": logs}

    def response(self, query: str, prompt: str) -> str:
        """What the model said: `query` after `prompt`, without end-of-turn tokens at its end."""
        if not isinstance(query, str) or not isinstance(prompt, str):
            raise InvalidOption("queries", query, "must be texts, as prompts")
        said = query.removeprefix(prompt)
        if said == query and prompt:
            raise InvalidOption(
                "queries",
                query,
                "does not begin with its prompt, so the response in it cannot be told",
                valid="prompts that OpenRLHF did not cut (--data.max_len, --rollout.max_new_tokens)",
            )
        return without_end(said, self._ends)


def make_openrlhf_reward_fn(
    env: Environment[Any] | str | None = None,
    *,
    on_error: OnError = "raise",
    retries: int = 1,
    end_of_turn: Sequence[str] = END_OF_TURN,
    max_concurrency: int = 8,
    timeout: float | None = None,
) -> OpenRLHFReward:
    """The ``reward_func`` of a file for ``--reward.remote_url``.

    Args:
        env: a single-turn environment, or its address; None when every label is an identity, as those of
            `make_openrlhf_dataset` are.
        on_error: for a response that could not be scored: "raise" (logged at ERROR with its task; OpenRLHF then
            ends the run), or a number, which is counted like a reward: OpenRLHF knows no missing one.
        retries: how often a response that could not be scored is tried again first.
        end_of_turn: texts of the tokens that end a response.
        max_concurrency: see `llenvs.integrations.Scorer`.
        timeout: seconds for one response; see `llenvs.integrations.Scorer`.

    Raises:
        InvalidOption: the environment has several turns.
    """
    return OpenRLHFReward(
        env,
        on_error=on_error,
        retries=retries,
        end_of_turn=end_of_turn,
        max_concurrency=max_concurrency,
        timeout=timeout,
    )


def make_openrlhf_agent_executor(
    env: Environment[Any] | str | None = None,
    *,
    tokenizer: Any = None,
    max_turns: int | None = None,
    retries: int = 1,
    timeout: float | None = None,
    on_error: float | str = "raise",
    end_of_turn: Sequence[str] = END_OF_TURN,
    parser: Any = "hermes",
    options: Mapping[str, Any] | None = None,
) -> type[Any]:
    """The class ``AgentExecutor`` of a file for ``--train.agent_func_path``: an `AgentExecutorBase` that plays
    whole episodes in `MultiTurnAgentExecutor`.

    OpenRLHF takes what the environment says as raw text, so the text between two turns (end of line, roles,
    generation prompt) is made here, by the chat template.

    Args:
        env: the environment, or its address; None when every label is an identity.
        tokenizer: of the model, or the path or name that `transformers.AutoTokenizer` takes; None for the one that
            OpenRLHF hands to the executor.
        max_turns: actions of one episode; None for the environment's own limit.
        retries: see `llenvs.integrations.episode.Episode`.
        timeout: seconds for one reset or step, then it is a failure; None for no limit. What hangs in this process
            goes on in its thread: to have it ended, isolate the environment (``container="process"``).
        on_error: for an episode whose environment failed: "raise" (logged at ERROR; the run ends), or a number as
            its reward.
        end_of_turn: texts of the tokens that end an answer, beside the tokenizer's end of sequence. An answer
            without one was cut, and ends the episode.
        parser: the form of tool calls, by its name.
        options: of the environment, when `env` is an address.

    Raises:
        NotInstalled: OpenRLHF is missing.
        InvalidOption: a number is out of range.
    """
    try:
        from llenvs.integrations.openrlhf_agent import executor_class
    except ImportError as error:
        raise NotInstalled(f"OpenRLHF ({error})", "openrlhf") from error
    return executor_class(
        env,
        tokenizer=tokenizer,
        max_turns=max_turns,
        retries=retries,
        timeout=timeout,
        on_error=on_error,
        end_of_turn=end_of_turn,
        parser=parser,
        options=options,
    )


def make_openrlhf_dataset(
    env: Environment[Any] | str,
    path: str | Path | None = None,
    *,
    indices: Iterable[int] | None = None,
    system_prompt: Any = None,
    datasource: str | None = None,
    chunk: int = 10_000,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The tasks as rows of OpenRLHF: ``prompt`` (messages), ``label`` (the identity) and ``datasource``.

    Args:
        env: the environment, or its address.
        path: of a file for ``--data.prompt_dataset``: ``.jsonl`` or ``.parquet``; None gives a `datasets.Dataset`.
        indices: which tasks, in which order; None for all.
        system_prompt: as `llenvs.inference.prompts.make_system_prompt` takes it.
        datasource: under which OpenRLHF reports; None for the environment's address.
        chunk: rows that are held at once.
        options: of the environment, when `env` is an address.

    Returns:
        The path, or the data set.

    Raises:
        NotInstalled: `pyarrow` (of `datasets`) is missing.
        InvalidOption: the path is of another kind, or its folder does not exist.
    """
    chunk = whole("chunk", chunk, at_least=1)
    file = None if path is None else file_path(path)
    if file is not None and file.suffix not in (".jsonl", ".parquet"):
        raise InvalidOption("path", str(path), "is of no known kind", valid="*.jsonl, *.parquet")
    provider = DatasetProvider(env, indices=indices, system_prompt=system_prompt, options=options)
    source = datasource or provider.env.spec.id
    rows = ({"prompt": item.messages, "label": item.task_id, "datasource": source} for item in provider)
    if file is not None and file.suffix == ".jsonl":
        return write_lines(file, rows)
    pyarrow = columns("openrlhf")
    text = pyarrow.string()
    message = pyarrow.struct([("role", text), ("content", text)])
    schema = pyarrow.schema([("prompt", pyarrow.list_(message)), ("label", text), ("datasource", text)])
    if file is None:
        return hf_dataset(rows, schema, chunk, "openrlhf")
    return write_parquet(file, rows, schema, chunk)


def row_of(label: Any) -> dict[str, Any]:
    """The row that a label stands for: an identity (JSON), or the index of a task."""
    text = str(label).strip()
    if text.isdecimal():
        return {"task_index": int(text)}
    return {IDENTITY: text}
