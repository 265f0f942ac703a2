"""A rollout that was generated segment by segment."""

from __future__ import annotations

from dataclasses import dataclass

from llenvs.core.generation import Generation
from llenvs.evaluation.rollout import Rollout


@dataclass(frozen=True, slots=True)
class SegmentedRollout(Rollout):
    """A rollout of a `SegmentedEnvironment`.

    A generation in the trajectory is the part of a request that spells the segment: its ids, logprobs and tokens,
    and with the first part of a request also the prompt's. `usage` is what all requests cost, those of branches
    and all text that was thrown away included; `requests` has the messages of each step without the message begun.

    Attributes:
        generations: of this rollout's own requests, whole and in order.
        branch: () or the path of a branch (see `SegmentStep.branch`).
        discarded_tokens: completion tokens of `generations` that are in no segment, because a decision threw away
            what the model had written beyond it; those of branches are the branches' own.
        continued_by_message: whether the model was asked in words to go on with its message, since the backend
            takes no assistant prefix (see `SegmentedTrajectoryRunner`).
    """

    branches: tuple[SegmentedRollout, ...] = ()
    generations: tuple[Generation, ...] = ()
    branch: tuple[int, ...] = ()
    discarded_tokens: int = 0
    continued_by_message: bool = False
