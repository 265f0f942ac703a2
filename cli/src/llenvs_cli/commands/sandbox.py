"""``llenvs sandbox``: the environments of their own that runtime "venv" makes, and what isolation left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llenvs_cli.failures import says_failures

if TYPE_CHECKING:
    from llenvs.container.sandboxes import Sandbox

sandbox = typer.Typer(help="Manage the environments that isolated adapters run in.", no_args_is_help=True)


@sandbox.command("list")
@says_failures
def list_sandboxes(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the sandboxes: name, Python, size, age, and where they are."""
    from llenvs.container import sandboxes
    from llenvs_cli.terminal import console, print_json, show_rows

    found = sandboxes.list_sandboxes()
    if as_json:
        print_json(
            [
                {
                    "name": each.name,
                    "adapter": each.adapter,
                    "python": each.python,
                    "path": str(each.path),
                    "bytes": each.size,
                    "created": each.created,
                    "last_used": each.last_used,
                    "contents": list(each.contents),
                }
                for each in found
            ]
        )
        return
    out = console()
    show_rows(out, [(each.name, _described(each)) for each in found])
    if not found:
        out.print("No sandboxes. Make one with: llenvs sandbox create ADAPTER")
    else:
        out.print(f"\nin {sandboxes.sandbox_root()}", style="dim")


@sandbox.command("create")
@says_failures
def create(
    adapter: Annotated[str, typer.Argument(metavar="ADAPTER", help="Name of the adapter, see: llenvs list")],
    python: Annotated[
        str | None,
        typer.Option(help="Version of Python; by default the adapter's choice.", show_default=False),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option("--package", "-p", help="An extra requirement, NAME==VERSION; it overrides. Repeatable."),
    ] = None,
) -> None:
    """Make the sandbox of an adapter now rather than at its first use."""
    from llenvs.container.sandbox_plan import plan_sandbox
    from llenvs.container.sandboxes import create_sandbox

    made = create_sandbox(plan_sandbox(adapter, python=python, packages=package or ()))
    typer.echo(made.name)


@sandbox.command("remove")
@says_failures
def remove(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Sandboxes, or adapters, for all of theirs.")
    ],
) -> None:
    """Remove sandboxes. Those in use stay."""
    from llenvs.container.sandboxes import remove_sandboxes

    for name in names:
        for removed in remove_sandboxes(name):
            typer.echo(f"removed {removed}")


@sandbox.command("clean")
@says_failures
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only say what would be removed.")] = False,
) -> None:
    """Remove what killed programs left: processes, containers, sockets, unfinished sandboxes."""
    from llenvs.container.cleanup import find_leaks, remove_leaks

    leaks = find_leaks()
    if dry_run:
        typer.echo(f"left behind: {leaks}")
        return
    remove_leaks(leaks)
    typer.echo(f"removed: {leaks}")


def _described(sandbox: Sandbox) -> str:
    return f"Python {sandbox.python}, {sandbox.size / 1e6:.0f} MB, used {_age(sandbox.last_used)}"


def _age(moment: float) -> str:
    import time

    seconds = max(time.time() - moment, 0.0)
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
