"""The error family: what was wrong, which values are valid, what to run next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def nearest(name: str, valid: Iterable[str], count: int = 3) -> list[str]:
    """The up to `count` names of `valid` that look most like `name`, best first.

    Case, ``-`` and ``_`` are ignored in the comparison; nothing alike gives an empty list.
    """

    def folded(text: str) -> str:
        return text.casefold().replace("-", "_").replace(" ", "_")

    wanted = folded(str(name))
    names = list(dict.fromkeys(valid))
    by_folded: dict[str, list[str]] = {}
    for each in names:
        by_folded.setdefault(folded(each), []).append(each)
    close = difflib.get_close_matches(wanted, list(by_folded), n=count, cutoff=0.6)
    contained = [f for f in by_folded if wanted and (wanted in f or f in wanted) and f not in close]
    return [each for f in [*close, *contained] for each in by_folded[f]][:count]


def listed(names: Iterable[str], limit: int = 12) -> str:
    """`names` joined by commas, cut after `limit` with the number left out."""
    all_names = list(names)
    shown = ", ".join(all_names[:limit])
    return shown if len(all_names) <= limit else f"{shown}, ... ({len(all_names) - limit} more)"


class LLEnvsError(Exception):
    """Root of everything LLEnvs raises on purpose. `str(error)` is one message meant for a person."""

    def __reduce__(self) -> tuple[Any, ...]:
        # the default calls the class with the message alone, which fails for most of the family
        # and would break a process pool whose worker raised one
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(cls: type[LLEnvsError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> LLEnvsError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    return error


class UnknownName(LLEnvsError):
    """A name that is not among the valid ones.

    Attributes: `name` as given, `valid` (all valid names), `suggestions` (the nearest, best first).
    """

    kind = "name"

    def __init__(self, name: str, valid: Sequence[str], hint: str = "") -> None:
        self.name = name
        self.valid = tuple(valid)
        self.suggestions = tuple(nearest(name, self.valid))
        message = f"unknown {self.kind} {name!r}"
        if self.suggestions:
            message += f"; did you mean {' or '.join(repr(s) for s in self.suggestions)}?"
        elif self.valid:
            message += f"; valid: {listed(self.valid)}"
        if hint:
            message += f" ({hint})" if self.suggestions or not self.valid else f". {hint}"
        super().__init__(message)


class UnknownAdapter(UnknownName):
    """No adapter of this name exists."""

    kind = "adapter"


class UnknownEnvironment(UnknownName):
    """The adapter has no environment of this name."""

    kind = "environment"


class UnknownOption(UnknownName):
    """An option that the environment, adapter or backend does not have."""

    kind = "option"


class UnknownExtractor(UnknownName):
    """No answer extractor (or cleaner) of this name exists."""

    kind = "answer extractor"


class UnknownPrompt(UnknownName):
    """No prompt, fragment, template or profile of this name exists."""

    kind = "prompt"


class UnknownBackend(UnknownName):
    """No inference backend of this name exists."""

    kind = "backend"


class InvalidOption(LLEnvsError):
    """A known option with a value it cannot take.

    Attributes: `field` (dotted path of the option), `value` as given, `problem`, `valid` (text, may be empty).
    """

    def __init__(self, field: str, value: object, problem: str, *, valid: str = "") -> None:
        self.field = field
        self.value = value
        self.problem = problem
        self.valid = valid
        shown = repr(value)
        if len(shown) > 120:
            shown = shown[:117] + "..."
        super().__init__(f"{field}: {problem}, got {shown}" + (f"; valid: {valid}" if valid else ""))

    @classmethod
    def unknown(cls, field: str, option: object, value: object, owner: str, valid: Iterable[str]) -> InvalidOption:
        """Of an `option` under `field` that `owner` (an extractor, a segmenter) lacks, with the nearest it has."""
        valid = list(valid)
        close = nearest(str(option), valid, count=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return cls(f"{field}.{option}", value, f"{owner} has no such option{meant}", valid=", ".join(valid))


STANDALONE = frozenset({"gem", "verifiers", "verifiers-v1"})
"""Distributions ``llenvs-<name>`` without an extra of ``llenvs``: what they pin excludes other extras."""


class NotInstalled(LLEnvsError):
    """A known adapter, backend or extra whose distribution is missing; the message holds the install command."""

    def __init__(self, what: str, extra: str, detail: str = "") -> None:
        self.what = what
        self.extra = extra
        standalone = extra in STANDALONE
        self.command = f"pip install llenvs-{extra}" if standalone else f'pip install "llenvs[{extra}]"'
        super().__init__(f"{what} is not installed; run: {self.command}" + (f" ({detail})" if detail else ""))


class AdapterNotInstalled(NotInstalled):
    """The adapter exists but its distribution is not installed here."""


class BackendNotInstalled(NotInstalled):
    """The backend exists but its distribution is not installed here."""


class TaskIndexOutOfRange(LLEnvsError):
    """`task_index` is not in ``0 <= i < len(env)``."""

    def __init__(self, task_index: object, size: int, environment: str) -> None:
        self.task_index = task_index
        self.size = size
        valid = f"0 to {size - 1}" if size else "none, the environment is empty"
        super().__init__(f"{environment}: task_index {task_index!r} is out of range; valid: {valid}")


class EpisodeOver(LLEnvsError):
    """`step` was called on a terminal state; reset, or step an earlier state."""


class InvalidAction(LLEnvsError):
    """What was given to `step` is not an `Action`. (An action the upstream refuses is no error: its answer is
    the next observation.)"""


class UpstreamFailed(LLEnvsError):
    """The benchmark's own code raised or died; the message holds what it said."""

    def __init__(self, environment: str, doing: str, cause: BaseException | str) -> None:
        said = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        self.environment = environment
        super().__init__(f"{environment}: the upstream failed while {doing}: {said}")


class SimulatorCrashed(UpstreamFailed):
    """The engine of a simulator died or did not answer in time; the message holds its exit status and last words.

    The host process lives on, and so does every state: a step taken again gets a new engine.
    Attributes: `timed_out`, whether it was ended because it took too long.
    """

    def __init__(
        self, environment: str, doing: str, cause: BaseException | str, *, timed_out: bool = False
    ) -> None:
        self.timed_out = timed_out
        super().__init__(environment, doing, cause)


class ReplayDiverged(LLEnvsError):
    """A replay of recorded actions did not show what was recorded: the upstream does not repeat itself.

    Attributes: `environment`; `step`, the number of actions after which it differs (0: at the beginning);
    `recorded` and `replayed`, the beginnings of the two observations.
    """

    def __init__(self, environment: str, step: int, recorded: str, replayed: str, detail: str = "") -> None:
        self.environment = environment
        self.step = step
        self.recorded = recorded
        self.replayed = replayed
        super().__init__(
            f"{environment}: the replay differs from what was recorded at step {step}"
            f"{f' ({detail})' if detail else ''}; recorded: {recorded!r}; replayed: {replayed!r}. What the "
            "upstream hears from outside must be asked for through Simulator.outside, so that a replay repeats it"
        )


class EncodingFailed(LLEnvsError):
    """A value that has no exact JSON form, or JSON that is no encoded value. The message names the path."""


class ContainerFailed(LLEnvsError):
    """The server of an isolated environment did not start, died, or does not answer.

    Attributes: `log_tail`, the last lines that the server wrote ("" when there are none), with which the message
    ends.
    """

    def __init__(self, message: str, log_tail: str = "") -> None:
        self.log_tail = log_tail.rstrip()
        super().__init__(f"{message}\nthe end of its log:\n{self.log_tail}" if self.log_tail else message)
