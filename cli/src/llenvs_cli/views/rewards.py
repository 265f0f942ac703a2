"""Signals of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from llenvs_cli.terminal import visible

if TYPE_CHECKING:
    from llenvs.core.signals import SignalBundle


def show_rewards(out: Console, rewards: SignalBundle) -> None:
    """A row for each signal, then the weighted total. Nothing when there is no signal."""
    if not len(rewards):
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in ("signal", "type", "reward", "weight", "feedback"):
        table.add_column(header, header_style="dim", overflow="fold")
    for signal in rewards:
        feedback = signal.feedback or ""
        error = signal.metadata.get("error")
        if error:
            feedback = f"{feedback} error: {error}".strip()
        table.add_row(
            Text(visible(signal.name), style="cyan"),
            str(signal.reward_type.value),
            "-" if signal.reward is None else number(signal.reward),
            number(signal.weight),
            Text(visible(feedback)),
        )
    out.print(table)
    out.print(Text(f"total reward {number(rewards.total)}", style="bold"))


def number(value: float) -> str:
    """`value` with up to four digits after the point, without trailing zeros."""
    return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:g}"
