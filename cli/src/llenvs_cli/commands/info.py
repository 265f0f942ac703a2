"""``llenvs info``: what an environment or a backend is, which options it takes, what a model sees of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llenvs_cli.failures import says_failures
from llenvs_cli.option_values import OPTION_HELP, parse_option_values

if TYPE_CHECKING:
    from rich.console import Console

    from llenvs.core.adapter import EnvironmentDescription
    from llenvs.core.message import ChatMessage
    from llenvs.core.tools import ToolDefinition


@says_failures
def info(
    environment: Annotated[
        str,
        typer.Argument(metavar="ADAPTER/NAME", help="The environment, or a backend's name.", show_default=False),
    ],
    option: Annotated[
        list[str] | None, typer.Option("-o", "--option", metavar="KEY=VALUE", help=OPTION_HELP, show_default=False)
    ] = None,
    task_index: Annotated[
        int, typer.Option("--task-index", metavar="N", help="The task that the sample prompt shows.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe an environment or a backend.

    Shows its options with types and defaults; of an environment also what counts as success, and a sample prompt
    as a model sees it.
    """
    from llenvs.core.errors import LLEnvsError
    from llenvs.core.registry import environment_registry
    from llenvs_cli.terminal import console, print_json

    options = parse_option_values(option)
    if _is_backend(environment):
        _describe_backend(environment, options, task_index, as_json)
        return
    _refuse_bare_adapter(environment)
    described = environment_registry.describe(environment)
    sample: _Sample | None = None
    problem = ""
    try:
        sample = _take_sample(described.info.id, options, task_index)
    except LLEnvsError as error:
        # What can be said without creating the environment is said even if it needs options or a download.
        # Whoever gave options or a task asked for just this environment, so there it is an error.
        if options or task_index:
            raise
        problem = str(error)
    if as_json:
        print_json(_as_dict(described, sample, problem))
    else:
        _show(console(), described, sample, problem)


@dataclasses.dataclass(frozen=True)
class _Sample:
    """An environment as it is once created, and the first request that one of its tasks leads to."""

    spec: dict[str, Any]
    success: str
    tasks: int
    extractor: str
    task_index: int
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...]


def _is_backend(name: str) -> bool:
    from llenvs.core.registry import environment_registry
    from llenvs.inference.backends import CATALOGUE, list_backends

    return name in {*list_backends(), *CATALOGUE} and name not in environment_registry.adapters()


def _describe_backend(name: str, options: dict[str, Any], task_index: int, as_json: bool) -> None:
    from llenvs.core.errors import InvalidOption
    from llenvs.inference.backends import describe_backend
    from llenvs_cli.terminal import console, print_json
    from llenvs_cli.views.backend import show_backend

    if options or task_index:
        raise InvalidOption("ADAPTER/NAME", name, "is a backend, which -o and --task-index do not go with")
    described = describe_backend(name)
    print_json(dataclasses.asdict(described)) if as_json else show_backend(console(), described)


def _refuse_bare_adapter(environment: str) -> None:
    from llenvs.core.errors import InvalidOption
    from llenvs.core.registry import environment_registry

    name = environment.strip("/").replace("-", "_")
    if "/" not in name and name in environment_registry.adapters():
        raise InvalidOption(
            "ADAPTER/NAME", environment, "is an adapter, not an environment", valid=f"those of: llenvs list {name}"
        )


def _take_sample(environment_id: str, options: dict[str, Any], task_index: int) -> _Sample:
    from llenvs.core.registry import make
    from llenvs.evaluation.conversation import Conversation
    from llenvs_cli.views.environment import describe_extractor, success_rule

    with make(environment_id, **options) as env:
        state, _ = env.reset(options={"task_index": task_index})
        spec = {field.name: getattr(env.spec, field.name) for field in dataclasses.fields(env.spec)}
        spec["metadata"] = dict(env.spec.metadata)
        conversation = Conversation()
        conversation.observe(state.observation)
        return _Sample(
            spec=spec,
            success=success_rule(env.spec),
            tasks=len(env),
            extractor=describe_extractor(env),
            task_index=task_index,
            messages=conversation.messages(),
            tools=conversation.tools,
        )


def _as_dict(described: EnvironmentDescription, sample: _Sample | None, problem: str) -> dict[str, Any]:
    about = described.info
    value: dict[str, Any] = {
        "id": about.id,
        "name": about.name,
        "adapter": about.adapter,
        "category": about.category,
        "description": about.description,
        "is_multi_turn": about.is_multi_turn,
        "metadata": dict(about.metadata),
        "options": [dataclasses.asdict(each) for each in described.options],
        "spec": None,
        "num_tasks": None,
        "sample": None,
    }
    if sample is None:
        value["error"] = problem
        return value
    value["spec"] = sample.spec
    value["num_tasks"] = sample.tasks
    value["sample"] = {
        "task_index": sample.task_index,
        "messages": [
            {"role": each.role, "content": each.content, "images": len(each.images)} for each in sample.messages
        ],
        "tools": [each.to_openai() for each in sample.tools],
    }
    return value


def _show(out: Console, described: EnvironmentDescription, sample: _Sample | None, problem: str) -> None:
    from rich.text import Text

    from llenvs_cli.terminal import heading, show_rows, visible
    from llenvs_cli.views.chat import show_messages, show_tools
    from llenvs_cli.views.options import show_options

    about = described.info
    out.print(heading(about.id))
    if about.description:
        out.print(Text(visible(about.description)))
    show_rows(out, list(_facts(described, sample).items()), style="dim")

    out.print()
    show_options(out, described.options)

    out.print()
    if sample is None:
        out.print(heading("No sample prompt"))
        out.print(Text(f"  {visible(problem)}", style="red"), soft_wrap=True)
        return
    out.print(heading(f"Sample prompt (task {sample.task_index})"))
    show_messages(out, sample.messages)
    if sample.tools:
        out.print()
        out.print(heading("Tools"))
        show_tools(out, sample.tools)
    out.print(f"\nTry it yourself: llenvs play {about.id}", style="dim")


def _facts(described: EnvironmentDescription, sample: _Sample | None) -> dict[str, str]:
    from llenvs_cli.terminal import plainly

    facts = {"category": described.info.category} if described.info.category else {}
    if sample is None:
        facts["turns"] = "several" if described.info.is_multi_turn else "one"
        return facts
    spec = sample.spec
    limit = "no limit" if spec["max_steps"] is None else f"at most {spec['max_steps']}"
    facts["tasks"] = str(sample.tasks)
    facts["turns"] = f"several, {limit}" if spec["is_multi_turn"] else "one"
    facts["success"] = sample.success
    facts["deterministic"] = "yes" if spec["deterministic"] else "no"
    offered = [name for name in ("tools", "images") if spec[f"supports_{name}"]]
    if offered:
        facts["offers"] = ", ".join(offered)
    if sample.extractor:
        facts["answer extractor"] = sample.extractor
    for key, value in spec["metadata"].items():
        if value not in (None, "", (), [], {}):
            facts[str(key)] = plainly(value)
    return facts
