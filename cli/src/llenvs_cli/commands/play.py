"""``llenvs play``: a person takes the model's place."""

from __future__ import annotations

from typing import Annotated

import typer

from llenvs_cli.failures import says_failures
from llenvs_cli.option_values import OPTION_HELP, parse_option_values


@says_failures
def play(
    environment: Annotated[
        str, typer.Argument(metavar="ADAPTER/NAME", help="The environment.", show_default=False)
    ],
    task_index: Annotated[
        int | None, typer.Option("--task-index", metavar="N", help="Which task; left out, one is drawn.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Draws the task and all that is random in it.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("-o", "--option", metavar="KEY=VALUE", help=OPTION_HELP, show_default=False)
    ] = None,
    multiline: Annotated[
        bool,
        typer.Option("--multiline", "-m", help="Answers have several lines; a line with a single . sends one."),
    ] = False,
) -> None:
    """Play an environment yourself.

    You see what the model sees, answer in its place, and see the rewards.
    """
    from llenvs.core.registry import make

    options = parse_option_values(option)
    with make(environment, **options) as env:
        from llenvs_cli.playing.answers import AnswerReader
        from llenvs_cli.playing.session import Session
        from llenvs_cli.terminal import console
        from llenvs_cli.views.environment import describe_extractor

        session = Session(env, AnswerReader(multiline=multiline), console(), extractor=describe_extractor(env))
        session.play(task_index=task_index, seed=seed)
