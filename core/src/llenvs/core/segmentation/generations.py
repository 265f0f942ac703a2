"""Generations of segments and of whole responses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TypeVar

from llenvs.core.generation import Generation, Usage
from llenvs.core.segmentation.control import Segment
from llenvs.core.trajectory import Transition

T = TypeVar("T")

APART = "apart"
"""Metadata of a segment's generation whose prompt ids do not go on from the ids of the segment before."""

SPLIT = "split"
"""Metadata of a segment's generation whose last characters are spelled by a token of the next segment."""


def joined(parts: Sequence[Transition]) -> Generation | None:
    """The generation of a whole response from those of its segments; None when no model made any of them.

    It has token ids and logprobs only where the response is one sequence that the model read and wrote: all
    segments are its own, none came after feedback, no prompt spelled those before with other ids, and no token was
    thrown away that spelled a part of it.
    """
    spoken = [t for t in parts if t.action.text or t.generation is not None]
    generations = [t.generation for t in spoken if t.generation is not None]
    if not generations:
        return None
    first, last = generations[0], generations[-1]
    whole = (
        len(generations) == len(spoken)
        and not any(Segment.of(t.action).feedback is not None for t in parts)
        and not any(g.metadata.get(APART) for g in generations)
        and not _lacks_a_token(generations)
    )
    ids = _chained([g.completion_token_ids for g in generations]) if whole else None
    logprobs = _chained([g.logprobs for g in generations]) if whole else None
    return Generation(
        text="".join(g.text for g in generations),
        tool_calls=last.tool_calls,
        finish_reason=last.finish_reason,
        usage=sum((g.usage for g in generations), Usage()),
        prompt_token_ids=None if ids is None else first.prompt_token_ids,
        completion_token_ids=ids,
        logprobs=logprobs,
        reasoning=first.reasoning,
        model=last.model,
        latency=sum(g.latency for g in generations),
    )


def _lacks_a_token(generations: Sequence[Generation]) -> bool:
    """Whether one of `generations` ends within a token that the next one, if any, does not have."""
    new_request = [(a, b.prompt_token_ids is not None) for a, b in pairwise(generations)]
    return any(a.metadata.get(SPLIT) and lost for a, lost in [*new_request, (generations[-1], True)])


def _chained(parts: Sequence[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    """All of them in a row; None when one is not known."""
    known = [part for part in parts if part is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(parts) else None
