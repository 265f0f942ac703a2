"""The results of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from llenvs_cli.terminal import heading, show_rows, visible
from llenvs_cli.views.rewards import number

if TYPE_CHECKING:
    from rich.table import Table

    from llenvs.evaluation import EvaluationResult, RunResult

_FOLDED = 15
"""By so many columns names of environments may be folded before the table is given up for lines."""


def show_results(out: Console, result: RunResult) -> None:
    """The table of scores, then signals, tokens, time and errors of each environment, and the run folder."""
    table = result.table()
    if _fits(out, table):
        out.print(table)
    else:
        show_rows(out, [(label, str(each).partition(": ")[2]) for label, each in result.environments.items()])
    out.print(heading("Signals, tokens, time"))
    show_rows(out, [(label, details(each)) for label, each in result.environments.items()])
    if result.output_dir is not None:
        out.print(Text(visible(f"\nResults are in {result.output_dir}")), soft_wrap=True)


def details(result: EvaluationResult) -> Text:
    """What the table leaves out: mean signals, the reward's interval, tokens, seconds, errors by type."""
    parts = [
        f"{name} {number(signal.mean)}{_over(result, signal.count)}" for name, signal in result.signals.items()
    ]
    if result.reward_interval is not None:
        interval = result.reward_interval
        parts.append(f"reward 95% CI {number(interval.low)} - {number(interval.high)}")
    usage = result.usage
    parts.append(f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens")
    if usage.cost is not None:
        parts.append(f"{usage.cost:.4f} US dollars")
    parts.append(f"{result.mean_seconds:.2f} s a trajectory, at most {result.max_seconds:.2f} s")
    text = Text(visible("; ".join(parts)))
    for kind, count in result.errors.items():
        text.append(visible(f"; {count} x {kind}"), style="red")
    return text


def _over(result: EvaluationResult, count: int) -> str:
    return "" if count == result.num_scored else f" (of {count} trajectories)"


def _fits(out: Console, table: Table) -> bool:
    natural = Measurement.get(out, out.options.update(max_width=1000), table).maximum
    return natural - out.width <= _FOLDED
