"""System prompts: named, put together from fragments, and composable with ``+``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llenvs.core.errors import InvalidOption
from llenvs.inference.prompts.catalog import Catalog, UnknownFragment, UnknownSystemPrompt
from llenvs.inference.prompts.fragments import PromptFragment, agreed_extractor, get_fragment
from llenvs.inference.prompts.slots import UnknownSlot, fill, slot_names


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The instructions that stand before the task.

    Attributes:
        name: unique among the registered system prompts.
        fragments: its pieces, in order. No pieces (or only empty ones) means no system message.
        doc: one line for people: what it is for.
        answer_extractor: name of the extractor that reads the format this prompt asks for. Left out, it is
            the one that the fragments ask for; InvalidOption when they ask for two different ones.
        slots: names of the ``{slot}`` s that `render` must be given. Braces that are not declared here are
            plain text, so LaTeX and JSON need no escaping.
        separator: what stands between two fragments.
    """

    name: str
    fragments: tuple[PromptFragment, ...] = ()
    doc: str = ""
    answer_extractor: str | None = None
    slots: tuple[str, ...] = ()
    separator: str = "\n"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", tuple(self.fragments))
        object.__setattr__(self, "slots", tuple(self.slots))
        if self.answer_extractor is None:
            agreed = agreed_extractor(f"system prompt {self.name}", (f.answer_extractor for f in self.fragments))
            object.__setattr__(self, "answer_extractor", agreed)
        present = {name for f in self.fragments for name in slot_names(f.text)}
        for slot in self.slots:
            if slot not in present:
                raise UnknownSlot(slot, sorted(present), f"system prompt {self.name} has no {{{slot}}}")

    @classmethod
    def from_text(
        cls, text: str, name: str = "text", *, doc: str = "", answer_extractor: str | None = None
    ) -> SystemPrompt:
        """A system prompt that says `text`, taken literally."""
        pieces = (PromptFragment("text", text),) if text.strip() else ()
        return cls(name, pieces, doc, answer_extractor)

    def __add__(self, other: SystemPrompt) -> SystemPrompt:
        """Both, one after the other; a fragment that both have is said once.

        Raises:
            InvalidOption: they ask for different answer formats.
        """
        if not isinstance(other, SystemPrompt):
            return NotImplemented
        if not self.fragments or not other.fragments:  # adding `none` changes nothing
            return self if self.fragments or not other.fragments else other
        name = f"{self.name}+{other.name}"
        return SystemPrompt(
            name,
            self.fragments + tuple(f for f in other.fragments if f not in self.fragments),
            " ".join(doc for doc in (self.doc, other.doc) if doc),
            agreed_extractor(f"system prompt {name}", (self.answer_extractor, other.answer_extractor)),
            tuple(dict.fromkeys(self.slots + other.slots)),
            self.separator,
        )

    def with_fragment(self, fragment: PromptFragment | str) -> SystemPrompt:
        """This prompt with one more fragment at its end (itself, or the name of a registered one).

        Raises:
            UnknownFragment: no fragment of that name is registered.
            InvalidOption: the fragment asks for another answer format than this prompt does.
        """
        piece = get_fragment(fragment) if isinstance(fragment, str) else fragment
        if piece in self.fragments:
            return self
        return replace(
            self,
            fragments=(*self.fragments, piece),
            answer_extractor=agreed_extractor(
                f"system prompt {self.name}", (self.answer_extractor, piece.answer_extractor)
            ),
        )

    def without_fragment(self, name: str) -> SystemPrompt:
        """This prompt without the fragment called `name`; its answer format goes with it.

        Raises:
            UnknownFragment: this prompt has no such fragment.
        """
        kept = tuple(f for f in self.fragments if f.name != name)
        if len(kept) == len(self.fragments):
            raise UnknownFragment(name, [f.name for f in self.fragments], f"in system prompt {self.name}")
        removed = {f.answer_extractor for f in self.fragments if f.name == name}
        extractor = None if self.answer_extractor in removed else self.answer_extractor
        present = {slot for f in kept for slot in slot_names(f.text)}
        slots = tuple(slot for slot in self.slots if slot in present)
        return replace(self, fragments=kept, answer_extractor=extractor, slots=slots)

    def with_answer_extractor(self, name: str | None) -> SystemPrompt:
        """This prompt read by another extractor (None: the one its fragments ask for)."""
        return replace(self, answer_extractor=name)

    def bind(self, **variables: str) -> SystemPrompt:
        """This prompt with some of its slots filled in.

        Raises:
            UnknownSlot: a variable that is no declared slot.
        """
        for name in variables:
            if name not in self.slots:
                has = f"the slots {', '.join(self.slots)}" if self.slots else "no slots"
                raise UnknownSlot(name, self.slots, f"system prompt {self.name} has {has}")
        if not variables:
            return self
        return replace(
            self,
            fragments=tuple(replace(f, text=fill(f.text, variables)) for f in self.fragments),
            slots=tuple(slot for slot in self.slots if slot not in variables),
        )

    def pieces(self, **variables: str) -> tuple[PromptFragment, ...]:
        """The fragments that say something, every slot filled in.

        Raises:
            UnknownSlot: a variable that is no declared slot.
            InvalidOption: a declared slot without a value.
        """
        bound = self.bind(**variables)
        if bound.slots:
            raise InvalidOption(
                f"system prompt {self.name}",
                sorted(variables),
                f"needs a value for {', '.join('{' + slot + '}' for slot in bound.slots)}",
            )
        return tuple(f for f in bound.fragments if f.text.strip())

    def render(self, **variables: str) -> str:
        """The text the model reads; "" when there is nothing to say. Errors as in `pieces`."""
        return self.separator.join(f.text for f in self.pieces(**variables))


system_prompts: Catalog[SystemPrompt] = Catalog(
    UnknownSystemPrompt, "`llenvs prompts` lists all; a text with a space in it is taken literally"
)


def register_system_prompt(prompt: SystemPrompt, *, replace: bool = False) -> SystemPrompt:
    """Make `prompt` known by its name; InvalidOption when the name is taken and `replace` is not set."""
    return system_prompts.add(prompt, replace=replace)


def get_system_prompt(name: str) -> SystemPrompt:
    """The registered system prompt called `name`; UnknownSystemPrompt with the nearest when there is none."""
    return system_prompts.get(name)


def list_system_prompts() -> tuple[SystemPrompt, ...]:
    """All registered system prompts."""
    return tuple(system_prompts)


def _register(name: str, doc: str, *pieces: str) -> None:
    register_system_prompt(SystemPrompt(name, tuple(get_fragment(piece) for piece in pieces), doc))


_register("none", "No system prompt: the model sees the environment's own text alone.")
_register(
    "general_reasoning",
    "Any task with a short answer: think, then the answer in answer tags.",
    "solve_problems",
    "step_by_step",
    "answer_tags",
)
_register(
    "direct_answer",
    "The answer at once, without reasoning.",
    "answer_only",
    "no_explanation",
)
_register(
    "chain_of_thought",
    "Reasoning written out, then a closing sentence with the answer.",
    "step_by_step",
    "answer_sentence",
)
_register("math_boxed", "Mathematics, the answer in \\boxed{} (MATH, AIME).", "step_by_step", "boxed_answer")
_register(
    "gsm8k",
    "Word problems with a number as the answer, in the format of GSM8K.",
    "step_by_step",
    "gsm8k_answer",
)
_register(
    "multiple_choice",
    "Questions with lettered choices (MMLU, GPQA).",
    "step_by_step",
    "multiple_choice_letter",
)


def _register_own(name: str, doc: str, text: str, *pieces: str) -> None:
    own = PromptFragment(name, text, f"The role of {name}.")
    register_system_prompt(SystemPrompt(name, (own, *(get_fragment(piece) for piece in pieces)), doc))


_register_own(
    "text_game",
    "Text games: one command a turn.",
    "You are playing a text game. Each message shows what you see.",
    "one_command",
)
_register_own(
    "tool_use",
    "Agents with tools.",
    "You complete tasks with the tools you are given.",
    "use_tools",
)
_register_own("code", "Programming tasks: one Python code block.", "You write correct Python code.", "code_block")
