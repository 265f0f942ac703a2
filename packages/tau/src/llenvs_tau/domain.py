"""A domain: what the upstream loads from its files, once per process."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from llenvs.core.encoding import canonical
from llenvs.core.errors import InvalidOption, LLEnvsError, UnknownEnvironment, UpstreamFailed
from llenvs.core.tools import ToolDefinition
from llenvs_tau.calculator import guard
from llenvs_tau.databases import Databases, databases_of
from llenvs_tau.upstream import Upstream, upstream

STOP = "###STOP###"
"""What agent or user write to end an episode."""


@dataclass(frozen=True)
class Domain:
    """A domain with or without a user.

    Attributes:
        name: as the upstream registers it.
        solo: whether the agent acts alone, also with the tools of the user.
        policy: the document that the agent is to follow (of banking with documents, without those of a task).
        upstream: the modules of tau2.
        databases: the databases at their beginning.
        user_tools: the upstream's own tools of the user; none when there are none.
    """

    name: str
    solo: bool
    policy: str
    upstream: Upstream
    databases: Databases
    agent_tools: tuple[ToolDefinition, ...]
    user_tools: tuple[Any, ...]

    def environment(self, task: Any) -> Any:
        """An upstream environment for `task`, at its beginning."""
        return self.databases.environment(task, solo=self.solo)

    def grading_environments(self, task: Any) -> Callable[..., Any]:
        """What the upstream's evaluator calls to make environments for `task`."""

        def make(solo_mode: bool = False) -> Any:
            made = self.databases.environment(task, solo=solo_mode)
            self.databases.prepare_comparison(made)
            return made

        return make

    @cached_property
    def initial_hash(self) -> str:
        """Of the databases at their beginning."""
        return whole_hash(self.environment(None))

    @cached_property
    def user_definitions(self) -> tuple[ToolDefinition, ...]:
        """Tools of the user."""
        return tuple(definition_of(tool) for tool in self.user_tools)

    def system_prompt(self, task: Any, policy: str) -> str:
        """What the upstream's own agent is told: how to act, the policy, and in solo mode the ticket."""
        agent = self.upstream.agent
        if not self.solo:
            return str(agent.SYSTEM_PROMPT.format(domain_policy=policy, agent_instruction=agent.AGENT_INSTRUCTION))
        alone = agent.LLMSoloAgent
        instruction = agent.AGENT_SOLO_INSTRUCTION.format(
            stop_function_name=alone.STOP_FUNCTION_NAME, stop_token=alone.STOP_TOKEN
        )
        return str(
            agent.SYSTEM_PROMPT_SOLO.format(
                agent_instruction=instruction, domain_policy=policy, ticket=task.ticket
            )
        )


def whole_hash(environment: Any) -> str:
    """The upstream's hashes of the agent's and the user's database."""
    return f"{environment.get_db_hash()} {environment.get_user_db_hash()}"


def definition_of(tool: Any) -> ToolDefinition:
    """An upstream tool, its schema unchanged."""
    function = tool.openai_schema["function"]
    return ToolDefinition(function["name"], function["description"], function["parameters"])


_lock = threading.Lock()
_domains: dict[str, Domain] = {}
_tasks: dict[tuple[str, str | None], tuple[Any, ...]] = {}


def domain_of(name: str, *, solo: bool, options: Mapping[str, Any]) -> Domain:
    """The domain `name`, loaded at first use.

    Args:
        name: of the domain.
        solo: whether the agent acts alone.
        options: keywords of the upstream's constructor.

    Raises:
        UnknownEnvironment: the installed release has no such domain.
        InvalidOption: the domain has no solo mode, or does not take these keywords.
        UpstreamFailed: it could not be loaded.
    """
    tau2 = upstream()
    if name not in tau2.registry.get_domains():
        hint = f"domains of {' '.join(tau2.release)}; banking_knowledge needs tau2 1.0, see the adapter's page"
        raise UnknownEnvironment(name, list(tau2.registry.get_domains()), hint)
    key = f"{name} {solo} {canonical(dict(options))}"
    with _lock:
        if key not in _domains:
            try:
                _domains[key] = _load(tau2, name, solo, dict(options))
            except LLEnvsError:
                raise
            except Exception as error:
                raise UpstreamFailed(f"tau/{name}", "loading the domain", error) from error
        return _domains[key]


def _load(tau2: Upstream, name: str, solo: bool, options: dict[str, Any]) -> Domain:
    constructor = tau2.registry.get_env_constructor(name)

    takes = inspect.signature(constructor).parameters

    def make(task: Any = None, **mode: Any) -> Any:
        return guard(constructor(**{**_keywords(task, takes), **options, **mode}))

    try:
        prototype = make(solo_mode=solo)
    except ValueError as error:
        if solo and "solo" in str(error):
            raise InvalidOption(
                "user",
                "solo",
                f"the upstream says: {error}",
                valid='one that talks (see user_backend, user_script), or "instructions"',
            ) from None
        raise
    except TypeError as error:
        raise InvalidOption("domain_options", options, str(error)) from None
    user_tools = tuple(prototype.get_user_tools()) if prototype.user_tools is not None else ()
    agent_tools = [definition_of(tool) for tool in prototype.get_tools()]
    if solo:
        agent_tools += [definition_of(tool) for tool in (*user_tools, _done(tau2))]
    return Domain(
        name,
        solo,
        prototype.get_policy(),
        tau2,
        databases_of(name, tau2.release, make),
        tuple(agent_tools),
        user_tools,
    )


def _keywords(task: Any, takes: Collection[str]) -> dict[str, Any]:
    """What a constructor wants to know of the task: banking's documents and log depend on it."""
    if task is None:
        return {}
    keywords: dict[str, Any] = {"task": task} if "task" in takes else {}
    if "read_log_allowlist" in takes:
        # look-ups that the reference solution makes are logged in the database, others are free
        steps = (task.evaluation_criteria and task.evaluation_criteria.actions) or ()
        names = (s.arguments.get("agent_tool_name") for s in steps if s.name == "call_discoverable_agent_tool")
        keywords["read_log_allowlist"] = {name for name in names if name}
    return keywords


def _done(tau2: Upstream) -> Any:
    """The tool with which the upstream's agent ends an episode in solo mode."""
    agent = SimpleNamespace(tools=[], STOP_TOKEN=STOP)
    tau2.agent.LLMSoloAgent.add_stop_tool(agent)
    return agent.tools[0]


def splits_of(name: str) -> Mapping[str, Sequence[str]]:
    """Splits that the upstream registers for a domain: name -> ids of the tasks."""
    loader = upstream().registry.get_task_splits_loader(name)
    found: Mapping[str, Sequence[str]] = (loader() if loader is not None else None) or {}
    return found


def tasks_of(name: str, split: str | None) -> tuple[Any, ...]:
    """The tasks of a split in the upstream's order, loaded at first use.

    Args:
        name: of the domain.
        split: None for the upstream's default.

    Raises:
        InvalidOption: there is no such split.
    """
    splits = splits_of(name)
    if split is not None and split not in splits:
        raise InvalidOption("split", split, f"{name} has no such split", valid=", ".join(splits) or "none at all")
    with _lock:
        if (name, split) not in _tasks:
            load = upstream().registry.get_tasks_loader(name)
            try:
                _tasks[name, split] = tuple(load() if split is None else load(split))
            except Exception as error:
                raise UpstreamFailed(f"tau/{name}", "loading the tasks", error) from error
        return _tasks[name, split]
