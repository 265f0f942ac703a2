"""``llenvs serve``: one environment behind a server, for clients on this or other machines."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from llenvs_cli.failures import says_failures
from llenvs_cli.option_values import OPTION_HELP, parse_option_values


class Where(StrEnum):
    """Which Python runs the server."""

    HERE = "process"
    SANDBOX = "venv"


@says_failures
def serve(
    environment: Annotated[str, typer.Argument(metavar="ADAPTER/NAME", help="What to serve.")],
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help=OPTION_HELP)] = None,
    host: Annotated[str, typer.Option(help="An address that others can reach needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    uds: Annotated[Path | None, typer.Option(help="Listen on a Unix socket instead.", show_default=False)] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Holds the bearer token that clients must show.", show_default=False)
    ] = None,
    seal_key_file: Annotated[
        Path | None,
        typer.Option(help="Seal hidden state with the key in it; made if missing.", show_default=False),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM certificate chain.", show_default=False)] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM private key.", show_default=False)] = None,
    runtime: Annotated[
        Where, typer.Option(help="venv: in an environment of its own that has the adapter, made now if need be.")
    ] = Where.HERE,
    python: Annotated[str | None, typer.Option(help="For venv: version of Python.", show_default=False)] = None,
    package: Annotated[
        list[str] | None, typer.Option("--package", "-p", help="For venv: an extra requirement; it overrides.")
    ] = None,
) -> None:
    """Serve an environment until stopped; evaluations reach it with container: {runtime: url, url: ...}."""
    adapter, slash, name = environment.partition("/")
    if not slash:
        from llenvs.core.errors import InvalidOption

        raise InvalidOption(
            "ADAPTER/NAME", environment, "must name the adapter too", valid="e.g. reasoning_gym/chain_sum"
        )
    arguments = ["--config", json.dumps({**parse_option_values(option), "adapter": adapter, "name": name})]
    arguments += ["--host", host, "--port", str(port)] if uds is None else ["--uds", str(uds)]
    files = {
        "--token-file": token_file,
        "--seal-key-file": seal_key_file,
        "--tls-cert": tls_cert,
        "--tls-key": tls_key,
    }
    for flag, path in files.items():
        arguments += [] if path is None else [flag, str(path)]
    if runtime is Where.SANDBOX:
        _serve_in_sandbox(adapter, python, package or [], arguments)
    raise typer.Exit(_serve_here(arguments))


def _serve_here(arguments: list[str]) -> int:
    from llenvs.core.errors import NotInstalled

    try:
        from llenvs_container.main import main
    except ModuleNotFoundError as error:
        raise NotInstalled("the server of isolated environments", "container", str(error)) from None
    return int(main(arguments))


def _serve_in_sandbox(adapter: str, python: str | None, packages: list[str], arguments: list[str]) -> None:
    """Become the server; this process is replaced and keeps its pid and terminal."""
    import os

    from llenvs.container.runtimes.venv import sandbox_variables
    from llenvs.container.sandbox_plan import plan_sandbox
    from llenvs.container.sandboxes import open_sandbox

    with open_sandbox(plan_sandbox(adapter, python=python, packages=packages)) as (sandbox, lock):
        os.set_inheritable(lock, True)  # as long as the server runs, the sandbox is in use
        command = [str(sandbox.interpreter), "-P", "-m", "llenvs_container", *arguments]
        os.execve(command[0], command, sandbox_variables(sandbox))
