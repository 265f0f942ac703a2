"""What there is, for people: everything registered, and what one name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llenvs.core.errors import UnknownPrompt
from llenvs.inference.prompts.few_shot import FewShot, list_few_shots
from llenvs.inference.prompts.fragments import PromptFragment, list_fragments
from llenvs.inference.prompts.profiles import ModelProfile, list_profiles
from llenvs.inference.prompts.system import SystemPrompt, list_system_prompts
from llenvs.inference.prompts.templates import QuestionTemplate, list_templates


@dataclass(frozen=True, slots=True)
class PromptDescription:
    """One registered thing: its `kind`, `name`, one line of `doc`, its `text`, and other `facts` about it."""

    kind: str
    name: str
    doc: str
    text: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.kind} {self.name}", f"  {self.doc}"]
        if self.text:
            lines += ["", *(f"    {line}".rstrip() for line in self.text.splitlines()), ""]
        lines += [f"  {name}: {value}" for name, value in self.facts.items()]
        return "\n".join(lines)


def list_prompts() -> tuple[PromptDescription, ...]:
    """Everything registered: system prompts, fragments, templates, few-shot sets, profiles, in this order."""
    return (
        *(_system_prompt(prompt) for prompt in list_system_prompts()),
        *(_fragment(fragment) for fragment in list_fragments()),
        *(_template(template) for template in list_templates()),
        *(_few_shot(few_shot) for few_shot in list_few_shots()),
        *(_profile(profile) for profile in list_profiles()),
    )


def describe_prompt(name: str) -> tuple[PromptDescription, ...]:
    """What is registered under `name`; several when things of different kinds share it.

    Raises:
        UnknownPrompt: nothing is; the message holds the nearest names.
    """
    everything = list_prompts()
    found = tuple(each for each in everything if each.name == name)
    if not found:
        raise UnknownPrompt(
            name, list(dict.fromkeys(each.name for each in everything)), "`llenvs prompts` lists all"
        )
    return found


def _system_prompt(prompt: SystemPrompt) -> PromptDescription:
    text = prompt.separator.join(f.text for f in prompt.fragments)
    facts = {
        "fragments": ", ".join(f.name for f in prompt.fragments) or "none",
        "answer extractor": prompt.answer_extractor or "none",
    }
    if prompt.slots:
        facts["slots"] = ", ".join(prompt.slots)
    return PromptDescription("system prompt", prompt.name, prompt.doc, text, facts)


def _fragment(fragment: PromptFragment) -> PromptDescription:
    facts = {"answer extractor": fragment.answer_extractor} if fragment.answer_extractor else {}
    return PromptDescription("fragment", fragment.name, fragment.doc, fragment.text, facts)


def _template(template: QuestionTemplate) -> PromptDescription:
    facts = {"slots": ", ".join(template.slots)}
    return PromptDescription("question template", template.name, template.doc, template.template, facts)


def _few_shot(few_shot: FewShot) -> PromptDescription:
    text = "\n\n".join(f"user: {e.question}\nassistant: {e.answer}" for e in few_shot.examples)
    return PromptDescription("few-shot set", few_shot.name, few_shot.doc, text)


def _profile(profile: ModelProfile) -> PromptDescription:
    facts = {
        "system role": _yes(profile.system_role),
        "assistant prefix": _yes(profile.assistant_prefix),
        "accepts temperature, top_p, top_k": _yes(profile.accepts_sampling),
        "reasons before it answers": _yes(profile.reasoning),
        "thinking tags": " ".join(profile.thinking_tags) if profile.thinking_tags else "none",
        "recommended sampling": ", ".join(f"{k}={v:g}" for k, v in profile.sampling.items()) or "none",
    }
    if profile.source:
        facts["source"] = profile.source
    return PromptDescription("model profile", profile.name, profile.doc, "", facts)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
