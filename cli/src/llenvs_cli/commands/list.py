"""``llenvs list``: which adapters, environments and backends there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llenvs_cli.failures import says_failures

if TYPE_CHECKING:
    from rich.console import Console

    from llenvs.core.adapter import Adapter, EnvironmentInfo


@says_failures
def list_environments(
    adapter: Annotated[
        str | None,
        typer.Argument(metavar="ADAPTER", help="Show the environments of this adapter.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List adapters, backends and environments.

    Without ADAPTER: what is installed, and what can be installed with which command.
    """
    from llenvs.core.registry import environment_registry
    from llenvs_cli.terminal import console, print_json

    if adapter is None:
        overview = _overview()
        print_json(overview) if as_json else _show_overview(console(), overview)
        return
    found = environment_registry.adapter(adapter)
    environments = found.list_environments()
    if as_json:
        print_json(
            {
                "adapter": found.name,
                "description": found.description,
                "environments": [_as_dict(each) for each in environments],
            }
        )
    else:
        _show_environments(console(), found, environments)


def _overview() -> dict[str, Any]:
    """Everything that `llenvs list` shows; an adapter or backend that cannot be loaded has an ``error``."""
    from llenvs.core.errors import LLEnvsError
    from llenvs.core.registry import environment_registry
    from llenvs.inference.backends import installable_backends, list_backends

    adapters: list[dict[str, Any]] = []
    for name in environment_registry.adapters():
        try:
            adapter = environment_registry.adapter(name)
            environments = len(adapter.list_environments())
        except LLEnvsError as error:  # one broken adapter must not hide the others
            adapters.append({"name": name, "error": str(error)})
        else:
            adapters.append({"name": name, "environments": environments, "description": adapter.description})
    return {
        "adapters": adapters,
        "installable_adapters": environment_registry.installable(),
        "backends": [_describe_backend(name) for name in list_backends()],
        "installable_backends": installable_backends(),
    }


def _describe_backend(name: str) -> dict[str, Any]:
    from llenvs.inference.backends import backend_class

    try:
        doc = backend_class(name).__doc__ or ""
    except Exception as error:  # noqa: BLE001 - a backend of someone else may fail in any way, and must not hide the others
        return {"name": name, "error": f"cannot be imported: {type(error).__name__}: {error}"}
    return {"name": name, "description": doc.strip().split("\n", 1)[0]}


def _show_overview(out: Console, overview: Mapping[str, Any]) -> None:
    _show_installed(out, "Adapters", overview["adapters"])
    _show_installable(out, overview["installable_adapters"])
    out.print()
    _show_installed(out, "Backends", overview["backends"])
    _show_installable(out, overview["installable_backends"])
    usable = [each["name"] for each in overview["adapters"] if "error" not in each]
    if usable:
        out.print(f"\nEnvironments of an adapter: llenvs list {usable[0]}", style="dim")
    backends = [each["name"] for each in overview["backends"] if "error" not in each]
    if backends:
        out.print(f"Options of a backend: llenvs info {backends[0]}", style="dim")


def _show_installed(out: Console, title: str, entries: Sequence[Mapping[str, Any]]) -> None:
    from rich.text import Text

    from llenvs_cli.terminal import heading, show_rows, visible

    out.print(heading(title))
    rows: list[tuple[str, str | Text]] = []
    for entry in entries:
        if "error" in entry:
            rows.append((entry["name"], Text(visible(entry["error"]), style="red")))
            continue
        count = entry.get("environments")
        amount = "" if count is None else f"{count} environment{'' if count == 1 else 's'}. "
        rows.append((entry["name"], amount + entry["description"]))
    show_rows(out, rows)
    if not rows:
        out.print("  none installed")


def _show_installable(out: Console, commands: Mapping[str, str]) -> None:
    from llenvs_cli.terminal import heading, show_rows

    if commands:
        out.print(heading("Not installed", style="dim"))
        show_rows(out, sorted(commands.items()), style="dim")


def _show_environments(out: Console, adapter: Adapter, environments: Sequence[EnvironmentInfo]) -> None:
    from rich.text import Text

    from llenvs_cli.terminal import heading, show_rows, visible

    by_category: dict[str, list[EnvironmentInfo]] = {}
    for each in environments:
        by_category.setdefault(each.category, []).append(each)
    out.print(heading(f"{adapter.name}: {len(environments)} environment{'' if len(environments) == 1 else 's'}"))
    if adapter.description:
        out.print(visible(adapter.description))
    for category, members in by_category.items():
        out.print()
        if category:
            out.print(Text.assemble((visible(category), "bold"), (f" ({len(members)})", "dim")))
        show_rows(out, [(each.name, each.description) for each in members])
    if environments:
        out.print(f"\nOptions and a sample prompt: llenvs info {environments[0].id}", style="dim")


def _as_dict(info: EnvironmentInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "name": info.name,
        "category": info.category,
        "description": info.description,
        "is_multi_turn": info.is_multi_turn,
        "metadata": dict(info.metadata),
    }
