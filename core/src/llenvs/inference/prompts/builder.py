"""Putting the parts together: a specification, a model's profile, and the messages that come of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llenvs.core.errors import InvalidOption
from llenvs.core.message import ChatMessage
from llenvs.inference.prompts.answer_format import FormatInjection
from llenvs.inference.prompts.explanation import ExplainedMessage, PromptExplanation, PromptPart
from llenvs.inference.prompts.few_shot import FewShot
from llenvs.inference.prompts.fragments import agreed_extractor
from llenvs.inference.prompts.profiles import GENERIC, ModelProfile, detect_profile
from llenvs.inference.prompts.system import SystemPrompt
from llenvs.inference.prompts.templates import PLAIN, QuestionTemplate

_NONE = SystemPrompt("none")
_ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """What the prompt is made of, whatever the model.

    Attributes:
        system_prompt: the instructions.
        template: the layout of the first user message.
        few_shot: examples before the question, if any.
        format: a format hint and its place, if any.
        variables: values for the slots of the system prompt.

    Raises:
        InvalidOption: system prompt and format hint ask for different answer formats.
    """

    system_prompt: SystemPrompt = _NONE
    template: QuestionTemplate = PLAIN
    few_shot: FewShot | None = None
    format: FormatInjection | None = None
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        agreed_extractor("prompt", self._extractors())

    def _extractors(self) -> tuple[str | None, ...]:
        hint = self.format.fragment.answer_extractor if self.format else None
        return (self.system_prompt.answer_extractor, hint)

    @property
    def answer_extractor(self) -> str | None:
        """Name of the extractor that reads the format this prompt asks for; None when it asks for none."""
        return agreed_extractor("prompt", self._extractors())

    def for_model(self, model_name: str) -> PromptBuilder:
        """A builder for the model called `model_name`, its profile found from the name."""
        return PromptBuilder(self, detect_profile(model_name))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A message in the making: its parts, and the environment's message it started from, if any."""

    role: str
    parts: tuple[PromptPart, ...]
    original: ChatMessage | None = None

    def before(self, *parts: PromptPart) -> _Draft:
        return dataclasses.replace(self, parts=(*parts, *self.parts))

    def after(self, *parts: PromptPart) -> _Draft:
        return dataclasses.replace(self, parts=(*self.parts, *parts))

    def message(self) -> ChatMessage:
        content = self.explained().content
        if self.original is None:
            return ChatMessage(role=self.role, content=content)
        return dataclasses.replace(self.original, role=self.role, content=content)

    def explained(self) -> ExplainedMessage:
        return ExplainedMessage(self.role, self.parts)


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Makes the messages of one `spec` for one family of models.

    The same input always gives the same messages, and the messages of a longer chat begin with those of a
    shorter one, so a chat may be rebuilt every turn or built once and appended to (except that `repeat` of
    a format hint needs the rebuilding).
    """

    spec: PromptSpec = PromptSpec()
    profile: ModelProfile = GENERIC

    @property
    def answer_extractor(self) -> str | None:
        """Name of the extractor that reads the format this prompt asks for; None when it asks for none."""
        return self.spec.answer_extractor

    @property
    def assistant_prefix(self) -> str | None:
        """What the reply has to begin with, for the generation request; None when there is no such thing."""
        hint = self.spec.format
        if hint is None or hint.where != "assistant" or not self.profile.assistant_prefix:
            return None
        return hint.fragment.text

    def build(
        self, question: str | Sequence[ChatMessage], **slots: str | Sequence[str]
    ) -> tuple[ChatMessage, ...]:
        """The messages to send.

        Args:
            question: the question, or the environment's chat so far. Of a chat, the first user message is
                taken as the question; a system message of the environment stays first and the system prompt
                follows it in the same message.
            slots: values for the other slots of the template (``choices``, ``task``, ...).

        Raises:
            UnknownSlot, InvalidOption: `slots` does not fit the template.
        """
        return tuple(draft.message() for draft in self._drafts(question, slots))

    def explain(
        self, question: str | Sequence[ChatMessage] | None = None, **slots: str | Sequence[str]
    ) -> PromptExplanation:
        """Which part of the messages came from where; ``print`` it, or walk its `messages`.

        Without a question the slots of the template stand for themselves.
        """
        if question is None:
            question = "{question}"
            slots = {slot: "{" + slot + "}" for slot in self.spec.template.slots if slot != "question"} | slots
        return PromptExplanation(
            profile=self.profile.name,
            messages=tuple(draft.explained() for draft in self._drafts(question, slots)),
            assistant_prefix=self.assistant_prefix,
            answer_extractor=self.answer_extractor,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterable[str]:
        profile, hint = self.profile, self.spec.format
        if not profile.system_role:
            yield f"{profile.name} takes no system message: its text starts the first user message"
        if hint is not None and hint.where == "assistant":
            if not profile.assistant_prefix:
                yield f"{profile.name} cannot continue a given beginning: the user message asks for it instead"
            elif profile.reasoning:
                yield f"{profile.name} reasons before it answers: an assistant prefix may cut the reasoning out"
        if not profile.accepts_sampling:
            yield f"{profile.name} refuses temperature, top_p and top_k"

    def _drafts(
        self, question: str | Sequence[ChatMessage], slots: Mapping[str, str | Sequence[str]]
    ) -> list[_Draft]:
        drafts = self._conversation(question, slots)
        drafts = self._with_system(self._with_examples(self._with_hint(drafts)))
        if not self.profile.system_role:
            drafts = _without_system_role(drafts)
        return [draft for draft in drafts if draft.parts or draft.original is not None]

    def _conversation(
        self, question: str | Sequence[ChatMessage], slots: Mapping[str, str | Sequence[str]]
    ) -> list[_Draft]:
        if isinstance(question, str):
            return [_Draft("user", (self._laid_out(question, slots),))]
        drafts = []
        laid_out = False
        for message in question:
            part = PromptPart(_ENVIRONMENT, message.content)
            if message.role == "user" and not laid_out:
                laid_out = True
                part = self._laid_out(message.content, slots)
            drafts.append(_Draft(message.role, (part,), message))
        if slots and not laid_out:
            raise InvalidOption("slots", sorted(slots), "have no user message to go into")
        return drafts

    def _laid_out(self, question: str, slots: Mapping[str, str | Sequence[str]]) -> PromptPart:
        template, few_shot = self.spec.template, self.spec.few_shot
        text = template.render(question, **slots)
        if few_shot is not None and few_shot.examples and not few_shot.as_messages:
            text = few_shot.labelled(text)
        return PromptPart(f"question, template {template.name}", text)

    def _hint_part(self) -> PromptPart | None:
        hint = self.spec.format
        if hint is None:
            return None
        if hint.where == "assistant":
            if self.profile.assistant_prefix:
                return None
            return PromptPart(
                "format, in place of an assistant prefix", f"Begin your reply with: {hint.fragment.text}"
            )
        return PromptPart(f"format, fragment {hint.fragment.name}", hint.fragment.text)

    def _with_hint(self, drafts: list[_Draft]) -> list[_Draft]:
        hint, part = self.spec.format, self._hint_part()
        if hint is None or part is None or hint.where == "system":
            return drafts
        given = 0
        out = []
        for draft in drafts:
            if draft.role == "user" and (hint.repeat or given == 0):
                draft = draft.after(part)
                given += 1
            out.append(draft)
        return out

    def _with_examples(self, drafts: list[_Draft]) -> list[_Draft]:
        few_shot, template = self.spec.few_shot, self.spec.template
        first_user = next((i for i, draft in enumerate(drafts) if draft.role == "user"), None)
        if few_shot is None or not few_shot.examples or first_user is None:
            return drafts
        if not few_shot.as_messages:
            examples = PromptPart(f"few-shot, {len(few_shot.examples)} examples", few_shot.text(template))
            return [draft.before(examples) if i == first_user else draft for i, draft in enumerate(drafts)]
        turns: list[_Draft] = []
        for number, (asked, answered) in enumerate(few_shot.turns(template), start=1):
            source = f"few-shot, example {number}"
            turns += self._with_hint([_Draft("user", (PromptPart(source, asked),))])
            turns.append(_Draft("assistant", (PromptPart(source, answered),)))
        return [*drafts[:first_user], *turns, *drafts[first_user:]]

    def _with_system(self, drafts: list[_Draft]) -> list[_Draft]:
        prompt, hint = self.spec.system_prompt, self.spec.format
        parts = [
            PromptPart(
                f"system prompt {prompt.name}, fragment {piece.name}",
                piece.text,
                glue=prompt.separator if i else "\n\n",
            )
            for i, piece in enumerate(prompt.pieces(**self.spec.variables))
        ]
        hint_part = self._hint_part()
        if hint is not None and hint.where == "system" and hint_part is not None:
            parts.append(hint_part)
        if not parts:
            return drafts
        if drafts and drafts[0].role == "system":
            return [drafts[0].after(*parts), *drafts[1:]]
        return [_Draft("system", tuple(parts)), *drafts]


def _without_system_role(drafts: list[_Draft]) -> list[_Draft]:
    """Each system message moved to the start of the user message after it, or made a user message."""
    out: list[_Draft] = []
    waiting: tuple[PromptPart, ...] = ()
    for draft in drafts:
        if draft.role == "system":
            waiting += draft.parts
        elif draft.role == "user":
            out.append(draft.before(*waiting))
            waiting = ()
        else:
            if waiting:
                out.append(_Draft("user", waiting))
                waiting = ()
            out.append(draft)
    if waiting:
        out.append(_Draft("user", waiting))
    return out
