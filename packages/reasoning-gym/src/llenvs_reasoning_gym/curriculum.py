"""Difficulty levels: the upstream's curricula as settings of a generator."""

from __future__ import annotations

from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs_reasoning_gym.catalogue import WITHOUT_CURRICULUM
from llenvs_reasoning_gym.upstream import config_class, library


def level_settings(name: str, level: int) -> dict[str, Any]:
    """What curriculum level `level` (0 is the easiest) sets in the configuration of generator `name`.

    An attribute that has fewer levels stays at its highest, as in the upstream's `set_global_level`.

    Raises:
        InvalidOption: there is no curriculum, no such level, or the upstream's own level is no valid
            configuration (this happens for a few); the message names the levels that can be used.
    """
    field = f"reasoning_gym/{name}: level"
    highest = _highest_level(name)
    if highest is None:
        raise InvalidOption(field, level, f"{name} has no curriculum, set its options instead")
    if 0 <= level <= highest:
        settings = _settings(name, level)
        problem = _problem(name, settings)
        if problem is None:
            return settings
        reason = f"the upstream's level {level} of {name} is no valid configuration ({problem})"
    else:
        reason = f"{name} has no such level"
    raise InvalidOption(field, level, reason, valid=", ".join(str(n) for n in valid_levels(name)))


def valid_levels(name: str) -> list[int]:
    """Levels of generator `name` that give a valid configuration; empty without a curriculum."""
    highest = _highest_level(name)
    if highest is None:
        return []
    return [n for n in range(highest + 1) if _problem(name, _settings(name, n)) is None]


def _highest_level(name: str) -> int | None:
    if name in WITHOUT_CURRICULUM:
        return None
    attributes = library().factory.create_curriculum(name).attributes.values()
    return max(len(attribute.levels) for attribute in attributes) - 1


def _settings(name: str, level: int) -> dict[str, Any]:
    curriculum = library().factory.create_curriculum(name)
    curriculum.set_global_level(level)
    config = curriculum.generate_configuration()
    fields: list[str] = []
    for attribute in curriculum.attributes.values():
        if hasattr(attribute, "lower_field_name"):
            fields += [attribute.lower_field_name, attribute.upper_field_name]
        else:
            fields.append(attribute.field_name)
    return {field: getattr(config, field) for field in fields}


def _problem(name: str, settings: dict[str, Any]) -> str | None:
    try:
        config = config_class(name)(**settings)
        if hasattr(config, "validate"):
            config.validate()
    except (AssertionError, TypeError, ValueError) as error:
        return str(error) or type(error).__name__
    return None
