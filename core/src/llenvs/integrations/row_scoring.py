"""Scores of single-turn rows, and what a trainer gets where there is none."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.core.loop import run_sync
from llenvs.integrations.checks import finite, whole
from llenvs.integrations.environment_user import takes_one_response
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.scoring import Scorer, ScoringResult

OnError = Literal["skip", "raise"] | float
"""What stands for the reward of a response that could not be scored: nothing, an exception, or this number."""

_Found = tuple[Scorer, int, str | None]
"""What `ScorerPool.find` gives for a row."""

_log = logging.getLogger("llenvs.integrations")


class NotScored(LLEnvsError):
    """The environment failed, so a response has no reward; the message holds the task and what it said."""


class RowScorer:
    """Scores rows of data sets of single-turn environments. Can be pickled (see `ScorerPool`).

    Args:
        env: of rows that have a ``task_index`` alone; None when all rows have an identity (column ``llenvs``).
        on_error: for a response that the environment could not score, once it is logged at ERROR with its task:
            "skip" (no reward), "raise" (`NotScored`), or a number.
        retries: how often a response that could not be scored is tried again, >= 0; what passes is not logged.
        max_concurrency: see `Scorer`.
        timeout: see `Scorer`.

    Raises:
        InvalidOption: `env` has several turns, for which one text is no episode; the message names the hook of the
            trainer to use.
    """

    def __init__(
        self,
        env: Environment[Any] | str | None,
        *,
        on_error: OnError,
        retries: int = 1,
        max_concurrency: int = 8,
        timeout: float | None = None,
        agent_hook: str,
    ) -> None:
        if not isinstance(on_error, str) or on_error not in ("skip", "raise"):
            finite("on_error", on_error, '"skip" or "raise"')
        self.pool = ScorerPool(env, max_concurrency=max_concurrency, timeout=timeout)
        self.on_error = on_error
        self._retries = whole("retries", retries, at_least=0)
        self._agent_hook = agent_hook
        if self.pool.environment is not None:
            self._check(self.pool.environment)

    def score(self, rows: Sequence[Mapping[str, Any]], responses: Sequence[str]) -> list[ScoringResult]:
        """A result for each row, in order; those of one environment are scored together.

        Raises:
            TaskMismatch, TaskIndexOutOfRange, InvalidOption: a row is no task of its environment, or a response is
                no text.
            NotScored: with ``on_error="raise"``.
        """
        return run_sync(self.ascore(rows, responses))

    async def ascore(self, rows: Sequence[Mapping[str, Any]], responses: Sequence[str]) -> list[ScoringResult]:
        """`score`, for callers with a loop."""
        found = [self.pool.find(row) for row in rows]
        if len(found) != len(responses):
            raise InvalidOption("responses", len(responses), f"must be as many as rows ({len(found)})")
        for response in responses:
            if not isinstance(response, str):
                raise InvalidOption("response", response, "is no text")
        for scorer in dict.fromkeys(scorer for scorer, _, _ in found):
            self._check(scorer.env)
        results = await _scored(found, responses)
        for _ in range(self._retries):
            failed = [number for number, result in enumerate(results) if result.error is not None]
            again = await _scored([found[n] for n in failed], [responses[n] for n in failed])
            for number, result in zip(failed, again, strict=True):
                results[number] = result
        self._report(found, results)
        return results

    def _report(self, found: Sequence[_Found], results: Sequence[ScoringResult]) -> None:
        """Log what could not be scored, and raise the first of it if `on_error` says so."""
        first: NotScored | None = None
        for (scorer, index, _), result in zip(found, results, strict=True):
            if result.error is not None:
                failure = NotScored(f"{scorer.env.spec.id}: task {index} was not scored: {result.error}")
                _log.error("%s", failure)
                first = first or failure
        if first is not None and self.on_error == "raise":
            raise first

    def reward(self, result: ScoringResult) -> float | None:
        """The reward of a result, by `on_error` where it has none."""
        if result.reward is not None or self.on_error in ("skip", "raise"):
            return result.reward
        return float(self.on_error)

    def _check(self, environment: Environment[Any]) -> None:
        if not takes_one_response(environment):
            raise InvalidOption(
                "env",
                environment.spec.id,
                "has several turns, and a text at the end holds the environment's words too",
                valid=f"single-turn environments; for this one use {self._agent_hook}",
            )


async def _scored(found: Sequence[_Found], responses: Sequence[str]) -> list[ScoringResult]:
    """The results of rows, in order; those of one environment are scored together."""
    results: dict[int, ScoringResult] = {}
    for scorer in dict.fromkeys(scorer for scorer, _, _ in found):
        numbers = [number for number, (of, _, _) in enumerate(found) if of is scorer]
        scored = await scorer.ascore_batch(
            [found[n][1] for n in numbers],
            [responses[n] for n in numbers],
            prompt_sha256s=[found[n][2] for n in numbers],
        )
        results.update(zip(numbers, scored, strict=True))
    return [results[number] for number in range(len(found))]
