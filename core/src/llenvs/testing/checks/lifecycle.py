"""Being made, being quiet, being closed."""

from __future__ import annotations

from collections.abc import Iterator

from llenvs.core.environment import Environment
from llenvs.testing.check import check
from llenvs.testing.subject import Subject


@check("the factory makes an Environment, and a fresh one each time")
def create(subject: Subject) -> Iterator[str]:
    """The first call of the factory; everything else needs it."""
    env = subject.environment
    if not isinstance(env, Environment):
        yield f"the factory gave {type(env).__name__}, which is no llenvs.Environment"
        return
    other = subject.factory()
    if other is env:
        yield "the factory gave the same object twice; it must make a fresh environment"
    else:
        other.close()


@check("nothing is written to standard output", needs=["episode"])
def quiet(subject: Subject) -> Iterator[str]:
    """Looks at what was written during creation and the walks."""
    _ = subject.walks
    text = subject.output.text
    if text:
        yield (
            f"wrote {len(text)} characters to standard output: {text[:200]!r}; whoever pipes results reads it as "
            "one, so use logging, and redirect an upstream that prints"
        )


@check("close() can be called twice, also by `with` and aclose()", needs=["reset"])
def close_twice(subject: Subject) -> Iterator[str]:
    """On an environment of its own, both unused and used."""
    with subject.factory() as unused:
        pass
    try:
        unused.close()
    except Exception as error:  # noqa: BLE001 - any error is the finding
        yield f"close() after `with` raised {type(error).__name__}: {error}"
    used = subject.factory()
    used.reset(seed=subject.seeds[0])
    used.close()
    try:
        used.close()
    except Exception as error:  # noqa: BLE001 - any error is the finding
        yield f"the second close() raised {type(error).__name__}: {error}"
