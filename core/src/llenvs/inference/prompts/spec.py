"""Prompts from configuration: names, literal texts and mappings, as they stand in YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption, UnknownOption
from llenvs.inference.prompts.answer_format import FormatInjection
from llenvs.inference.prompts.builder import PromptSpec
from llenvs.inference.prompts.few_shot import FewShot, FewShotExample, get_few_shot
from llenvs.inference.prompts.fragments import PromptFragment, get_fragment
from llenvs.inference.prompts.slots import slot_names
from llenvs.inference.prompts.system import SystemPrompt, get_system_prompt
from llenvs.inference.prompts.templates import PLAIN, QuestionTemplate, get_template

_SYSTEM_KEYS = ("name", "fragments", "text", "variables", "answer_extractor")
_PROMPT_KEYS = ("system_prompt", "template", "few_shot", "format")
_TEMPLATE_KEYS = ("name", "template", "extra_slots")
_FEW_SHOT_KEYS = ("examples", "as_messages", "header", "question_label", "answer_label")
_EXAMPLE_KEYS = ("question", "answer", "slots")
_FORMAT_KEYS = ("fragment", "text", "where", "repeat", "answer_extractor")


def make_system_prompt(spec: object = None, *, field: str = "system_prompt") -> SystemPrompt:
    """A system prompt from its configuration.

    Args:
        spec: None or "" (no system prompt); the name of a registered one; a text with a space or line break
            in it, taken literally; a `SystemPrompt`; or a mapping with any of

            - ``name``: a registered prompt to start from,
            - ``text``: literal text, after that prompt,
            - ``fragments``: names of registered fragments (or literal texts with a space), at the end,
            - ``variables``: values for the slots; with them, ``{slot}`` s of `text` are slots too,
            - ``answer_extractor``: the extractor that reads the format it asks for.
        field: what the option is called in errors.

    Raises:
        UnknownSystemPrompt, UnknownFragment, UnknownOption, UnknownSlot: with the nearest names.
        InvalidOption: a value of the wrong type, or two answer formats at once.
    """
    if spec is None:
        return get_system_prompt("none")
    if isinstance(spec, SystemPrompt):
        return spec
    if isinstance(spec, str):
        if not spec.strip():
            return get_system_prompt("none")
        return SystemPrompt.from_text(spec) if _is_text(spec) else get_system_prompt(spec)
    options = _mapping(spec, field, _SYSTEM_KEYS, "a name, a text, or a mapping")
    name = _string(options, "name", field)
    prompt = get_system_prompt(name) if name is not None else SystemPrompt("custom")
    variables = _strings(options, "variables", field)
    text = _string(options, "text", field)
    if text is not None:
        slots = tuple(slot for slot in slot_names(text) if slot in variables)
        prompt += SystemPrompt("text", (PromptFragment("text", text),), slots=slots)
    for piece in _list(options, "fragments", field):
        prompt = prompt.with_fragment(_fragment(piece, f"{field}.fragments"))
    extractor = _string(options, "answer_extractor", field)
    if extractor is not None:
        prompt = prompt.with_answer_extractor(extractor)
    return prompt.bind(**variables)


def make_prompt(spec: object = None) -> PromptSpec:
    """A whole prompt from its configuration.

    Args:
        spec: a `PromptSpec`; anything `make_system_prompt` takes but a mapping; or a mapping with any of

            - ``system_prompt``: see `make_system_prompt`,
            - ``template``: a registered name, a text with ``{question}`` in it, or
              ``{name, template, extra_slots}``,
            - ``few_shot``: a registered name, a list of examples (``[question, answer]`` or
              ``{question, answer, slots}``), or ``{examples, as_messages, header, question_label, answer_label}``,
            - ``format``: the name of a fragment, a text, or
              ``{fragment or text, where, repeat, answer_extractor}``; ``where`` is system, user or assistant.

    Raises:
        UnknownPrompt, UnknownOption, InvalidOption: as in `make_system_prompt`, the field named.
    """
    if isinstance(spec, PromptSpec):
        return spec
    if not isinstance(spec, Mapping):
        return PromptSpec(make_system_prompt(spec, field="prompt"))
    options = _mapping(spec, "prompt", _PROMPT_KEYS, "a mapping")
    return PromptSpec(
        system_prompt=make_system_prompt(options.get("system_prompt")),
        template=_template(options.get("template")),
        few_shot=_few_shot(options.get("few_shot")),
        format=_format(options.get("format")),
    )


def _is_text(spec: str) -> bool:
    return any(character.isspace() for character in spec.strip())


def _template(spec: object) -> QuestionTemplate:
    if spec is None:
        return PLAIN
    if isinstance(spec, QuestionTemplate):
        return spec
    if isinstance(spec, str):
        literal = _is_text(spec) or "{" in spec
        return QuestionTemplate("text", spec) if literal else get_template(spec)
    options = _mapping(spec, "template", _TEMPLATE_KEYS, "a name, a text, or a mapping")
    text = _string(options, "template", "template")
    name = _string(options, "name", "template")
    if text is None:
        if name is None:
            raise InvalidOption("template", spec, "has neither a name nor a template")
        return get_template(name)
    extra = tuple(str(slot) for slot in _list(options, "extra_slots", "template"))
    return QuestionTemplate(name or "text", text, extra_slots=extra)


def _few_shot(spec: object) -> FewShot | None:
    if spec is None or isinstance(spec, FewShot):
        return spec
    if isinstance(spec, str):
        return get_few_shot(spec)
    if not isinstance(spec, Mapping):
        spec = {"examples": spec}
    options = _mapping(spec, "few_shot", _FEW_SHOT_KEYS, "a name, a list of examples, or a mapping")
    examples = [
        _example(each, f"few_shot.examples[{i}]") for i, each in enumerate(_list(options, "examples", "few_shot"))
    ]
    as_messages = _flag(options, "as_messages", "few_shot", default=True)
    texts = {key: value for key in _FEW_SHOT_KEYS[2:] if (value := _string(options, key, "few_shot")) is not None}
    return FewShot(examples, as_messages, **texts)


def _example(spec: object, field: str) -> FewShotExample:
    valid = "[question, answer] or {question, answer}"
    if isinstance(spec, FewShotExample):
        return spec
    if isinstance(spec, Mapping):
        options = _mapping(spec, field, _EXAMPLE_KEYS, valid)
        # YAML reads `answer: 4` as a number; the model reads the same characters either way.
        question, answer = (_scalar(options.get(key), f"{field}.{key}") for key in ("question", "answer"))
        slots = _mapping(options.get("slots") or {}, f"{field}.slots", None, "a mapping")
        return FewShotExample(question, answer, slots)
    if isinstance(spec, Sequence) and not isinstance(spec, str) and len(spec) == 2:
        return FewShotExample(_scalar(spec[0], field), _scalar(spec[1], field))
    raise InvalidOption(field, spec, "is no example", valid=valid)


def _format(spec: object) -> FormatInjection | None:
    if spec is None or isinstance(spec, FormatInjection):
        return spec
    if isinstance(spec, str):
        return FormatInjection(_fragment(spec, "format"))
    options = _mapping(spec, "format", _FORMAT_KEYS, "a fragment's name, a text, or a mapping")
    name, text = _string(options, "fragment", "format"), _string(options, "text", "format")
    if (name is None) == (text is None):
        raise InvalidOption("format", dict(options), "needs exactly one of fragment and text")
    extractor = _string(options, "answer_extractor", "format")
    if name is not None:
        fragment = get_fragment(name)
        if extractor is not None:
            fragment = PromptFragment(fragment.name, fragment.text, fragment.doc, extractor)
    else:
        fragment = PromptFragment("text", text or "", "", extractor)
    where = _string(options, "where", "format") or "user"
    return FormatInjection(fragment, where, _flag(options, "repeat", "format", default=False))


def _fragment(spec: object, field: str) -> PromptFragment:
    if isinstance(spec, PromptFragment):
        return spec
    if not isinstance(spec, str):
        raise InvalidOption(field, spec, "is no fragment", valid="a registered name or a text")
    return PromptFragment("text", spec) if _is_text(spec) else get_fragment(spec)


def _mapping(spec: object, field: str, keys: Sequence[str] | None, valid: str) -> Mapping[str, Any]:
    if not isinstance(spec, Mapping):
        raise InvalidOption(field, spec, "has the wrong type", valid=valid)
    for key in spec:
        if keys is not None and key not in keys:
            raise UnknownOption(f"{field}.{key}", [f"{field}.{each}" for each in keys])
    return spec


def _string(options: Mapping[str, Any], key: str, field: str) -> str | None:
    value = options.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidOption(f"{field}.{key}", value, "has the wrong type", valid="a text")


def _scalar(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InvalidOption(field, value, "has the wrong type", valid="a text or a number")


def _flag(options: Mapping[str, Any], key: str, field: str, *, default: bool) -> bool:
    value = options.get(key, default)
    if isinstance(value, bool):
        return value
    raise InvalidOption(f"{field}.{key}", value, "has the wrong type", valid="true or false")


def _list(options: Mapping[str, Any], key: str, field: str) -> Sequence[Any]:
    value = options.get(key)
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise InvalidOption(f"{field}.{key}", value, "has the wrong type", valid="a list")


def _strings(options: Mapping[str, Any], key: str, field: str) -> dict[str, str]:
    given = _mapping(options.get(key) or {}, f"{field}.{key}", None, "a mapping")
    return {str(name): _scalar(value, f"{field}.{key}.{name}") for name, value in given.items()}
