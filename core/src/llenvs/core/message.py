"""Chat messages, the form in which models are spoken to."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llenvs.core.encoding import record
from llenvs.core.tools import ToolCall

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = ("system", "user", "assistant", "tool")


@record
@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image, either its encoded bytes (`data`, PNG by default) or an address (`url`); exactly one of them.

    `detail` is the hint that some APIs take ("low", "high", "auto").
    """

    data: bytes | None = None
    url: str | None = None
    media_type: str = "image/png"
    detail: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("ImageContent needs exactly one of data and url")

    @property
    def as_url(self) -> str:
        """The address, or the bytes as a ``data:`` URL (RFC 2397)."""
        if self.url is not None:
            return self.url
        return f"data:{self.media_type};base64,{base64.b64encode(self.data or b'').decode('ascii')}"


@record
@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat.

    Attributes:
        role: "system", "user", "assistant" or "tool".
        content: the text ("" when there is none).
        images: shown after the text.
        tool_calls: what an assistant message asks for.
        tool_call_id: for role "tool", the id of the call it answers.
        name: for role "tool", the tool's name.
        metadata: what a backend needs back unchanged (e.g. signed reasoning blocks); no model sees it.
    """

    role: str
    content: str = ""
    images: tuple[ImageContent, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"unknown role {self.role!r}; valid: {', '.join(ROLES)}")
        if not isinstance(self.content, str):
            raise TypeError(f"ChatMessage.content must be a str, got {type(self.content).__name__}")
        object.__setattr__(self, "images", tuple(self.images))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @classmethod
    def system(cls, content: str) -> ChatMessage:
        """A system message."""
        return cls("system", content)

    @classmethod
    def user(cls, content: str, images: tuple[ImageContent, ...] = ()) -> ChatMessage:
        """A user message."""
        return cls("user", content, images)

    @classmethod
    def assistant(cls, content: str, tool_calls: tuple[ToolCall, ...] = ()) -> ChatMessage:
        """An assistant message."""
        return cls("assistant", content, tool_calls=tool_calls)
