"""What a run would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from llenvs_cli.terminal import heading, plainly, show_rows, visible
from llenvs_cli.views.chat import show_messages, show_tools

if TYPE_CHECKING:
    from llenvs.evaluation import EvaluationConfig, PreparedEnvironment, PreparedRun


def show_plan(out: Console, config: EvaluationConfig) -> None:
    """The resolved configuration, the environments as created, one sample prompt of each. Nothing is sent.

    Raises:
        LLEnvsError: whatever would keep the run from starting, but for what only the model's side can tell.
    """
    from llenvs.evaluation import prepare_run

    with prepare_run(config, with_backend=False) as run:
        out.print(heading("Configuration"))
        out.print(Text(visible(_as_yaml(config))), soft_wrap=True)
        for notice in run.notices:
            out.print(Text(visible(f"Note: {notice}"), style="yellow"), soft_wrap=True)
        out.print(heading("Environments"))
        show_rows(out, [(each.label, _amount(each)) for each in run.environments])
        for each in run.environments:
            out.print()
            _show_sample(out, run, each)
        out.print()
        out.print(
            Text(f"Dry run: {run.num_trajectories} trajectories would run, nothing was sent.", style="bold"),
            soft_wrap=True,
        )


def _as_yaml(config: EvaluationConfig) -> str:
    import yaml

    from llenvs.evaluation.resolved import without_secrets

    data = without_secrets(config.model_dump(mode="json", exclude_defaults=True))
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100).rstrip()


def _amount(each: PreparedEnvironment) -> str:
    tasks = f"{len(each.task_indices)} of {len(each.environment)} tasks"
    repeats = "" if each.repeats == 1 else f" x {each.repeats} attempts"
    return f"{tasks}{repeats}" + (f"; {plainly(each.options)}" if each.options else "")


def _show_sample(out: Console, run: PreparedRun, each: PreparedEnvironment) -> None:
    from llenvs.evaluation.conversation import Conversation
    from llenvs.evaluation.seeds import derive_seed

    task = each.task_indices[0]
    state, _ = each.environment.reset(
        seed=derive_seed(run.config.seed, "reset", task, 0), options={"task_index": task}
    )
    conversation = Conversation(each.prompt_builder)
    conversation.observe(state.observation)
    out.print(heading(f"{each.label}, task {task}, for {run.model or 'the default model'}"))
    show_messages(out, conversation.messages())
    if each.prompt_builder.assistant_prefix:
        out.print(Text(visible(f"The reply begins with: {each.prompt_builder.assistant_prefix}"), style="dim"))
    if conversation.tools:
        out.print(Text("Tools:", style="dim"))
        show_tools(out, conversation.tools)
