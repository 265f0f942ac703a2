"""``-o key=value`` on the command line: values are read as they would be in a YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OPTION_HELP = "An option of the environment as KEY=VALUE, the value as in YAML. Repeatable."


def parse_option_values(pairs: Sequence[str] | None, *, flag: str = "-o") -> dict[str, Any]:
    """``["size=10", "levels=[1, 2]"]`` as ``{"size": 10, "levels": [1, 2]}``. Errors name `flag`.

    Raises:
        InvalidOption: an entry without ``=``, or a value that is no YAML.
    """
    import yaml

    from llenvs.core.errors import InvalidOption

    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise InvalidOption(flag, pair, "is not of the form KEY=VALUE")
        try:
            values[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            problem = str(getattr(error, "problem", None) or "cannot be read")
            raise InvalidOption(f"{flag} {key.strip()}", text, f"is no YAML ({problem})") from None
    return values
