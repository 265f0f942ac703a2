"""What a prompt looks like and where each part of it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A stretch of a message: its `text`, its `source`, and the `glue` between it and the part before."""

    source: str
    text: str
    glue: str = "\n\n"


@dataclass(frozen=True, slots=True)
class ExplainedMessage:
    """One message as a sequence of parts."""

    role: str
    parts: tuple[PromptPart, ...]

    @property
    def content(self) -> str:
        """The message's text, exactly as it is sent. Parts without text leave no trace."""
        text = ""
        for part in self.parts:
            if part.text:
                text += (part.glue if text else "") + part.text
        return text


@dataclass(frozen=True, slots=True)
class PromptExplanation:
    """A built prompt, taken apart.

    Attributes:
        profile: name of the model profile it was built for.
        messages: the messages, each with the source of its parts.
        assistant_prefix: what the reply is made to begin with, or None.
        answer_extractor: name of the extractor that reads the requested format, or None.
        notes: what the profile changed, in words.
    """

    profile: str
    messages: tuple[ExplainedMessage, ...]
    assistant_prefix: str | None = None
    answer_extractor: str | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {
            "profile": self.profile,
            "messages": [
                {
                    "role": message.role,
                    "content": message.content,
                    "parts": [{"source": part.source, "text": part.text} for part in message.parts],
                }
                for message in self.messages
            ],
            "assistant_prefix": self.assistant_prefix,
            "answer_extractor": self.answer_extractor,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = []
        for number, message in enumerate(self.messages, start=1):
            lines.append(f"[{number}] {message.role}")
            for part in message.parts:
                lines.append(f"  ({part.source})")
                lines += [f"    {line}".rstrip() for line in part.text.splitlines()]
        if self.assistant_prefix is not None:
            lines.append(f"reply begins with: {self.assistant_prefix}")
        lines.append(f"model profile: {self.profile}")
        lines.append(f"answer extractor: {self.answer_extractor or 'none'}")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)
