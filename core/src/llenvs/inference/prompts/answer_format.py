"""Where the request for an answer format stands in the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.fragments import PromptFragment, get_fragment

Where = Literal["system", "user", "assistant"]
PLACES: tuple[str, ...] = get_args(Where)


@dataclass(frozen=True, slots=True, init=False)
class FormatInjection:
    """A format hint and its place.

    Attributes:
        fragment: what is said (a registered fragment's name is looked up).
        where: "system": at the end of the system prompt. "user": at the end of the first user message.
            "assistant": the reply is made to begin with it (an assistant prefix, e.g. ``<think>``); for a
            model that cannot continue a prefix, the first user message asks for that beginning instead.
        repeat: with "user", the hint stands at the end of every user message. Either way a message that was
            sent once never changes in later turns, so prompt caches and token-exact training data stay valid.

    Raises:
        UnknownFragment: no fragment of that name is registered.
        InvalidOption: `where` is none of the three, or `repeat` is set for another place than "user".
    """

    fragment: PromptFragment
    where: Where = "user"
    repeat: bool = False

    def __init__(self, fragment: PromptFragment | str, where: str = "user", repeat: bool = False) -> None:
        if where not in PLACES:
            raise InvalidOption("format.where", where, "no such place", valid=", ".join(PLACES))
        if repeat and where != "user":
            raise InvalidOption("format.repeat", repeat, f"has no meaning with where={where}", valid="false")
        piece = get_fragment(fragment) if isinstance(fragment, str) else fragment
        object.__setattr__(self, "fragment", piece)
        object.__setattr__(self, "where", where)
        object.__setattr__(self, "repeat", repeat)
