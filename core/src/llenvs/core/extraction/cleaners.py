"""Named text cleaners that run before an extractor searches and after it found something.

A cleaner is a pure function `str -> str` in linear time. Any cleaner may be named in `before` or in `after`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from llenvs.core.errors import UnknownExtractor
from llenvs.core.extraction.boxes import whole_box


class UnknownCleaner(UnknownExtractor):
    """No text cleaner of this name exists."""

    kind = "cleaner"


class Marks(NamedTuple):
    """What a text must hold for a cleaner to do anything: marks in angle or square brackets.

    Most texts have no square brackets, and a pattern that begins with one character searches faster.
    """

    angle: re.Pattern[str]
    either: re.Pattern[str]

    @classmethod
    def of(cls, angle: str, square: str) -> Marks:
        """From the sources of the two kinds of marks."""
        return cls(re.compile(angle), re.compile(f"{angle}|{square}"))

    def for_text(self, text: str) -> re.Pattern[str]:
        """What finds the marks in `text`."""
        return self.either if "[" in text else self.angle


class Cleaner(NamedTuple):
    """One named cleaner: its name in YAML, what it does in a line, its function, and its marks if it has some."""

    name: str
    doc: str
    function: Callable[[str], str]
    marks: Marks | None = None


# Control tokens of common chat formats. The first alternative covers ChatML, Llama 3, Phi, gpt-oss
# (<|im_end|>) and DeepSeek's full-width bars (<｜end▁of▁sentence｜>); the rest name tokens one by one.
_SPECIAL_TOKEN = Marks.of(
    r"<(?:[|｜][^\s|｜<>]{1,64}[|｜]>|/?s>|(?:bos|eos|pad|unk|mask|sep|cls)>|(?:start|end)_of_turn>|</?SYS>>)",
    r"\[(?:/?INST|BOS|EOS|PAD)\]",
)


def _special_tokens(text: str) -> str:
    return _SPECIAL_TOKEN.for_text(text).sub("", text)


def _hide_blocks(marks: Marks, text: str) -> str:
    """`text` without the blocks that `marks` mark (groups: the slash, the name).

    An unclosed opening tag hides all that follows it. A closing tag without an opening one hides all that
    precedes it: many chat templates put the opening tag into the prompt.
    """
    tag = marks.for_text(text)
    first = tag.search(text)
    if first is None:
        return text
    kept: list[str] = []
    position = 0
    opened: str | None = None
    for match in tag.finditer(text, first.start()):
        closing, name = bool(match[1]), match[2].lower()
        if opened is None:
            if closing:
                kept.clear()
            else:
                kept.append(text[position : match.start()])
                opened = name
            position = match.end()
        elif closing and name == opened:
            opened = None
            position = match.end()
    if opened is None:
        kept.append(text[position:])
    return "".join(kept)


# Names hidden by the cleaners, in lower case. Magistral writes [THINK] with square brackets.
HIDDEN_TAGS = {"thinking": ("think", "thinking", "thought"), "reasoning": ("reasoning",)}


def _tags(names: tuple[str, ...]) -> Marks:
    """What finds the opening and closing tags of these names."""
    tag = rf"(/?)((?i:{'|'.join(names)}))[>\]]"
    return Marks(re.compile(f"<{tag}"), re.compile(rf"[<\[]{tag}"))


_HIDDEN = {cleaner: _tags(names) for cleaner, names in HIDDEN_TAGS.items()}


def _thinking(text: str) -> str:
    return _hide_blocks(_HIDDEN["thinking"], text)


def _reasoning(text: str) -> str:
    return _hide_blocks(_HIDDEN["reasoning"], text)


def _whitespace(text: str) -> str:
    return text.strip(" \t\r\n\v\f\u00a0\u200b\u200e\u200f\u2060\ufeff").strip()


def _blank_lines(text: str) -> str:
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last])


def _punctuation(text: str) -> str:
    stripped = text.rstrip(" \t\r\n.,;:!?。，；：！？…")
    # "5!" is a factorial, not an exclamation.
    if stripped and text[len(stripped) :].startswith("!") and (stripped[-1].isdigit() or stripped[-1] == ")"):
        return stripped + "!"
    return stripped


_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "‚": "‘", "«": "»", "‹": "›", "「": "」", "『": "』"}


def _quotes(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    if closing is None and text[:1] == "”":  # Swedish and Finnish quotation
        closing = "”"
    if closing is None or len(text) < 2 or not text.endswith(closing):
        return text
    inner = text[1:-1]
    # '"a" and "b"' begins and ends with a quote, but the two are no pair.
    return text if closing in inner or text[0] in inner else inner


_MATH_WRAPPINGS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))


def _latex(text: str) -> str:
    for opening, closing in _MATH_WRAPPINGS:
        if len(text) >= len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : len(text) - len(closing)]
            return text if opening in inner or closing in inner or inner.endswith("\\") else inner
    return text


def _boxed(text: str) -> str:
    inner = whole_box(text)
    return text if inner is None else inner


_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\{([^{}]*)\}")


def _latex_text(text: str) -> str:
    match = _TEXT_COMMAND.fullmatch(text)
    return match[1] if match else text


def _markdown(text: str) -> str:
    for mark in ("**", "__", "`", "*", "_"):
        inner = text[len(mark) : len(text) - len(mark)]
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            return inner
    if text.count("**") % 2:  # the other half stood outside of what was found: "**Answer:** 42"
        return text.removeprefix("**") if text.startswith("**") else text.removesuffix("**")
    return text


_ALL = (
    Cleaner(
        "special_tokens",
        "removes control tokens of chat formats: <|im_end|>, </s>, [INST], <eos>",
        _special_tokens,
        _SPECIAL_TOKEN,
    ),
    Cleaner(
        "thinking",
        "hides <think>, <thinking> and <thought> blocks, also when half of the pair is missing",
        _thinking,
        _HIDDEN["thinking"],
    ),
    Cleaner(
        "reasoning",
        "hides <reasoning> blocks, also when half of the pair is missing",
        _reasoning,
        _HIDDEN["reasoning"],
    ),
    Cleaner("whitespace", "strips white space and zero-width characters at both ends", _whitespace),
    Cleaner("blank_lines", "strips blank lines at both ends and keeps indentation", _blank_lines),
    Cleaner("punctuation", "strips trailing punctuation", _punctuation),
    Cleaner("quotes", "strips a matching pair of quotes, typographic ones too", _quotes),
    Cleaner("latex", r"strips LaTeX math marks around the whole: $..$, $$..$$, \(..\), \[..\]", _latex),
    Cleaner("boxed", r"strips a \boxed{..} or \fbox{..} around the whole", _boxed),
    Cleaner("latex_text", r"strips a \text{..} (\textbf, \mathrm, ...) around the whole", _latex_text),
    Cleaner("markdown", "strips Markdown emphasis and inline code marks around the whole", _markdown),
)
CLEANERS: dict[str, Cleaner] = {cleaner.name: cleaner for cleaner in _ALL}

# After-cleaners undo wrappings inside wrappings ("**$5$.**"), so the chain repeats until nothing changes.
# The bound keeps hostile nesting from costing more than a few passes.
_MAX_ROUNDS = 6


def cleaner_names() -> list[str]:
    """The names of all cleaners, sorted."""
    return sorted(CLEANERS)


def check_cleaner_names(names: Iterable[str]) -> None:
    """Raises `UnknownCleaner` for the first name that is none."""
    for name in names:
        if name not in CLEANERS:
            raise UnknownCleaner(name, cleaner_names())


def clean(text: str, names: tuple[str, ...]) -> str:
    """`text` through the named cleaners, once each, in order."""
    functions, marks = _chain(names)
    if marks is not None and marks.for_text(text).search(text) is None:
        return text
    for function in functions:
        text = function(text)
    return text


@functools.lru_cache(maxsize=256)
def _chain(names: tuple[str, ...]) -> tuple[tuple[Callable[[str], str], ...], Marks | None]:
    """The functions of these cleaners, and the marks of all of them together if each has some."""
    chosen = [CLEANERS[name] for name in names]
    found = [cleaner.marks for cleaner in chosen if cleaner.marks is not None]
    marks = None
    if chosen and len(found) == len(chosen):
        angle = "|".join(each.angle.pattern for each in found)
        marks = Marks(re.compile(angle), re.compile("|".join(each.either.pattern for each in found)))
    return tuple(cleaner.function for cleaner in chosen), marks


def clean_until_stable(text: str, names: tuple[str, ...]) -> str:
    """`text` through the named cleaners, again and again until nothing changes (six rounds at most)."""
    for _ in range(_MAX_ROUNDS):
        cleaned = clean(text, names)
        if cleaned == text:
            break
        text = cleaned
    return text
