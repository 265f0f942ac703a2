"""``llenvs run``: evaluate a model as a configuration says."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llenvs_cli.failures import INTERRUPTED, REFUSED, say, says_failures
from llenvs_cli.option_values import parse_option_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llenvs.evaluation import EvaluationConfig, RunResult
    from llenvs_cli.run_overrides import Overrides


@says_failures
def run(
    config_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG",
            help="A YAML file. Can be left out with --environment and --backend.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="At most N tasks of each environment.", show_default=False),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            "-e",
            metavar="NAME",
            help="Only this environment of the configuration; an ADAPTER/NAME that it lacks is added. Repeatable.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Use this model.", show_default=False)
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", metavar="NAME", help="Use this backend.", show_default=False)
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Set any field of the configuration, such as model.max_tokens=64. Repeatable.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="TARGETS", help="Any of console,file,wandb, with commas.", show_default=False
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(
            "--output-dir",
            metavar="DIR",
            help="The run folder. Default: that of the configuration, else results/CONFIG.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume",
            help="Go on with what the run folder holds, or refuse a folder that holds a run.",
        ),
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and show sample prompts; send nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Evaluate a model.

    The same command again resumes a run that was stopped.
    """
    settings = {
        **parse_option_values(setting, flag="--set"),
        **({} if model is None else {"model.model": model}),
        **({} if backend is None else {"model.backend": backend}),
        **({} if log is None else {"log": log}),
        **({} if output_dir is None else {"output_dir": str(output_dir)}),
    }
    source: Any = {} if config_file is None else config_file
    overrides = _overrides(source, settings, limit=limit, names=environment or [])
    with overrides.locating_errors():
        config = _load(source, {**settings, **overrides.fields}, config_file)
        if dry_run:
            _show_plan(config)
            return
        result = _evaluate(config, resume=resume)
    _report(result, as_json=as_json)


def _overrides(source: Any, settings: Mapping[str, Any], *, limit: int | None, names: Sequence[str]) -> Overrides:
    from llenvs.evaluation import load_config
    from llenvs_cli.run_overrides import overrides_of

    needed = source or "environments" in settings
    written = load_config(source, overrides=settings) if needed and (names or limit is not None) else None
    return overrides_of(written, limit=limit, names=names)


def _load(source: Any, fields: Mapping[str, Any], config_file: Path | None) -> EvaluationConfig:
    from llenvs.evaluation import load_config
    from llenvs_cli.run_overrides import default_output_dir

    config = load_config(source, overrides=fields)
    if config.output_dir is not None:
        return config
    # On the command line nothing may be lost, so a run always has a folder.
    return load_config(source, overrides={**fields, "output_dir": str(default_output_dir(config_file))})


def _show_plan(config: EvaluationConfig) -> None:
    from llenvs_cli.terminal import console
    from llenvs_cli.views.plan import show_plan

    show_plan(console(), config)


def _evaluate(config: EvaluationConfig, *, resume: bool) -> RunResult:
    from llenvs.evaluation import EvaluationInterrupted, run_config

    try:
        return run_config(config, resume=resume)
    except EvaluationInterrupted as stopped:
        if "console" not in config.log:  # else it has said so already
            kept = f"; they are kept in {stopped.output_dir}"
            say(f"Stopped after {stopped.done} of {stopped.total} trajectories{kept}.", label="")
        say(f"Resume with: {resume_command()}", label="")
        raise typer.Exit(INTERRUPTED) from None


def resume_command() -> str:
    """The command that goes on with this run, to be typed in the same directory."""
    arguments = [each for each in sys.argv[1:] if each not in ("--resume", "--no-resume")]
    program = [sys.executable, "-m", "llenvs_cli"] if sys.argv[0].endswith("__main__.py") else ["llenvs"]
    return shlex.join([*program, *arguments, "--resume"])


def _report(result: RunResult, *, as_json: bool) -> None:
    from llenvs_cli.terminal import console, print_json
    from llenvs_cli.views.results import show_results

    if as_json:
        print_json(result.to_dict())
    else:
        show_results(console(), result)
    if result.num_done and result.num_errors == result.num_done:
        say("every trajectory ended in an error, so there is no score.")
        raise typer.Exit(REFUSED)
