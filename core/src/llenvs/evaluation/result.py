"""What an evaluation found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llenvs.core.generation import Usage
from llenvs.evaluation.statistics import Interval

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class SignalSummary:
    """Mean of one signal over the `count` trajectories that have a number for it."""

    mean: float
    count: int


@dataclass(frozen=True)
class EvaluationResult:
    """The figures of one environment.

    Every score is over the trajectories without error; the error rate stands beside it.

    Attributes:
        environment: its label, by default ``adapter/name``.
        model: the model's name.
        num_tasks: tasks asked for.
        repeats: attempts at each.
        num_done: trajectories that ended, those with an error included.
        num_errors: those that ended in an error of the environment, the backend or the scorer.
        num_judged: trajectories for which the environment declared success or failure.
        num_successes: those that succeeded.
        success_interval: Wilson interval of `success_rate`; with repeats, for clusters of attempts. None when
            there is nothing to judge.
        mean_reward: mean of the trajectories' total rewards, None when there is none.
        reward_interval: bootstrap interval of `mean_reward`, resampling tasks.
        signals: per signal the mean over trajectories (steps of a trajectory summed).
        pass_at_k: k -> mean over tasks of the unbiased estimate of pass@k, for k up to `repeats`.
        usage: tokens and cost of all trajectories.
        mean_turns: actions per trajectory.
        num_cut_off: trajectories with a generation that ended at the token limit.
        mean_seconds, max_seconds: duration of a trajectory, in seconds.
        wall_seconds: of this session (a resumed run: since it was resumed).
        session_tokens: completion tokens of this session.
        errors: number of errors by type.
        output_dir: the run folder, if there is one.
    """

    environment: str
    model: str
    num_tasks: int
    repeats: int = 1
    num_done: int = 0
    num_errors: int = 0
    num_judged: int = 0
    num_successes: int = 0
    success_interval: Interval | None = None
    mean_reward: float | None = None
    reward_interval: Interval | None = None
    signals: Mapping[str, SignalSummary] = field(default_factory=dict)
    pass_at_k: Mapping[int, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    mean_turns: float = 0.0
    num_cut_off: int = 0
    mean_seconds: float = 0.0
    max_seconds: float = 0.0
    wall_seconds: float = 0.0
    session_tokens: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    output_dir: Path | None = None

    @property
    def num_planned(self) -> int:
        """Trajectories asked for."""
        return self.num_tasks * self.repeats

    @property
    def num_scored(self) -> int:
        """Trajectories without error: what the scores are over."""
        return self.num_done - self.num_errors

    @property
    def complete(self) -> bool:
        """Whether every trajectory asked for has ended."""
        return self.num_done >= self.num_planned

    @property
    def success_rate(self) -> float | None:
        """Successes over judged trajectories; None when the environment declared neither."""
        return self.num_successes / self.num_judged if self.num_judged else None

    @property
    def error_rate(self) -> float:
        """Errors over ended trajectories."""
        return self.num_errors / self.num_done if self.num_done else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Completion tokens a second in this session."""
        return self.session_tokens / self.wall_seconds if self.wall_seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types, the computed figures included."""
        data = asdict(self)
        data["output_dir"] = None if self.output_dir is None else str(self.output_dir)
        data["pass_at_k"] = {str(k): v for k, v in self.pass_at_k.items()}
        for name in ("num_planned", "num_scored", "complete", "success_rate", "error_rate", "tokens_per_second"):
            data[name] = getattr(self, name)
        return data

    def table(self) -> Table:
        """The figures as a rich table, for ``rich.print``."""
        return results_table([self])

    def trajectories(self) -> Iterator[dict[str, Any]]:
        """The records of this environment from the run folder, in the order they ended.

        Raises:
            InvalidOption: the run had no `output_dir`.
        """
        from llenvs.evaluation.run_folder import read_trajectories

        return (r for r in read_trajectories(self.output_dir) if r["environment"] == self.environment)

    def __str__(self) -> str:
        return f"{self.environment}: " + ", ".join(f"{name} {value}" for name, value in self._figures())

    def _figures(self) -> Iterator[tuple[str, str]]:
        if self.success_rate is not None:
            yield "success", rate_text(self.success_rate, self.success_interval)
        if self.mean_reward is not None:
            yield "reward", number_text(self.mean_reward, self.reward_interval)
        for k, value in self.pass_at_k.items():
            if k > 1:
                yield f"pass@{k}", f"{value:.1%}"
        yield "errors", f"{self.num_errors}/{self.num_done}"


@dataclass(frozen=True)
class RunResult:
    """The figures of a run over several environments, in the order of the configuration.

    Attributes:
        environments: label -> figures.
        wall_seconds: of this session, in seconds.
        output_dir: the run folder, if there is one.
    """

    environments: Mapping[str, EvaluationResult]
    wall_seconds: float = 0.0
    output_dir: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether every trajectory asked for has ended."""
        return all(result.complete for result in self.environments.values())

    @property
    def num_done(self) -> int:
        """Trajectories that ended."""
        return sum(result.num_done for result in self.environments.values())

    @property
    def num_planned(self) -> int:
        """Trajectories asked for."""
        return sum(result.num_planned for result in self.environments.values())

    @property
    def num_errors(self) -> int:
        """Trajectories that ended in an error."""
        return sum(result.num_errors for result in self.environments.values())

    @property
    def usage(self) -> Usage:
        """Tokens and cost of all trajectories."""
        return sum((result.usage for result in self.environments.values()), Usage())

    @property
    def macro_success_rate(self) -> float | None:
        """Mean of the environments' success rates, each counting alike; None when there is none."""
        rates = [r.success_rate for r in self.environments.values() if r.success_rate is not None]
        return math.fsum(rates) / len(rates) if rates else None

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {
            "complete": self.complete,
            "num_planned": self.num_planned,
            "num_done": self.num_done,
            "num_errors": self.num_errors,
            "macro_success_rate": self.macro_success_rate,
            "usage": asdict(self.usage),
            "wall_seconds": self.wall_seconds,
            "output_dir": None if self.output_dir is None else str(self.output_dir),
            "environments": {label: result.to_dict() for label, result in self.environments.items()},
        }

    def table(self) -> Table:
        """One row per environment, and their mean when there are several, as a rich table."""
        return results_table(list(self.environments.values()), self.macro_success_rate)

    def __str__(self) -> str:
        return "\n".join(str(result) for result in self.environments.values())


def results_table(results: list[EvaluationResult], macro_success_rate: float | None = None) -> Table:
    """One row per result, as a rich table that fits 80 columns; what is the same for all stands below it."""
    from rich import box
    from rich.table import Table

    model = f"Results of {results[0].model}" if results else "Results"
    repeated = sorted({k for r in results for k in r.pass_at_k if k > 1})
    table = Table(title=model, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("environment", overflow="fold")
    for name in ("done", "errors", "success", "95% CI", "reward", *(f"pass@{k}" for k in repeated)):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        interval = r.success_interval
        table.add_row(
            r.environment,
            f"{r.num_done}/{r.num_planned}",
            f"{r.num_errors} ({r.error_rate:.1%})" if r.num_errors else "0",
            "-" if r.success_rate is None else f"{r.success_rate:.1%}",
            "-" if interval is None else f"{interval.low:.1%} - {interval.high:.1%}",
            "-" if r.mean_reward is None else f"{r.mean_reward:.3f}",
            *(f"{r.pass_at_k[k]:.1%}" if k in r.pass_at_k else "-" for k in repeated),
        )
    if len(results) > 1 and macro_success_rate is not None:
        table.add_section()
        table.add_row("mean of environments", "", "", f"{macro_success_rate:.1%}")
    table.caption = _caption(results)
    return table


def _caption(results: list[EvaluationResult]) -> str:
    usage = sum((r.usage for r in results), Usage())
    done = sum(r.num_done for r in results)
    parts = [f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens"]
    if usage.cost is not None:
        parts.append(f"{usage.cost:.4f} US dollars")
    if done:
        seconds = math.fsum(r.mean_seconds * r.num_done for r in results) / done
        parts.append(f"{seconds:.2f} s a trajectory")
    cut_off = sum(r.num_cut_off for r in results)
    if cut_off:
        parts.append(f"{cut_off} cut off at the token limit")
    return "; ".join(parts)


def rate_text(rate: float, interval: Interval | None) -> str:
    """A rate in per cent with its interval."""
    return f"{rate:.1%}" + (f" [{interval.low:.1%}, {interval.high:.1%}]" if interval else "")


def number_text(value: float, interval: Interval | None) -> str:
    """A number with its interval."""
    return f"{value:.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else "")
