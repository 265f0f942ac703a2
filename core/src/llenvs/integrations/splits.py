"""Tasks for training and tasks for testing, apart from each other and the same ones every time."""

from __future__ import annotations

import hashlib
import warnings
from typing import NamedTuple

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.integrations.checks import finite, whole
from llenvs.integrations.task_identity import prompt_sha256


class TaskSplit(NamedTuple):
    """Indices of tasks, sorted; no task is in both."""

    train: tuple[int, ...]
    test: tuple[int, ...]


def split_tasks(
    tasks: Environment[object] | int, *, test_share: float = 0.1, seed: int = 0, distinct_prompts: bool = True
) -> TaskSplit:
    """Split the tasks of an environment into train and test.

    Which side a task falls on is decided by a hash of the seed and of its prompt (of its index, where only the
    number of tasks is given or `distinct_prompts` is False), so it does not change when tasks are added, and two
    tasks of one prompt are never on different sides.

    Args:
        tasks: an environment, or a number of tasks, >= 0.
        test_share: of the tasks for testing, 0 <= share <= 1. Met on average, not exactly.
        seed: other seeds, other splits.
        distinct_prompts: reset every task for its prompt. False is quicker and trusts that no prompt occurs twice.

    Warns where one side is left empty, though a share of each was asked for.

    Raises:
        InvalidOption: the share is not in range, or `tasks` is neither.
    """
    if not 0.0 <= finite("test_share", test_share, "0 to 1") <= 1.0:
        raise InvalidOption("test_share", test_share, "is no share", valid="0 to 1")
    environment = tasks if isinstance(tasks, Environment) else None
    size = whole("tasks", tasks, at_least=0) if environment is None else len(environment)
    sides: tuple[list[int], list[int]] = ([], [])
    for index in range(size):
        key = str(index)
        if environment is not None and distinct_prompts:
            key = prompt_sha256(environment.reset(seed=0, options={"task_index": index})[0].observation)
        digest = hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=8).digest()
        sides[int.from_bytes(digest, "big") < test_share * 2**64].append(index)
    if size > 1 and 0 < test_share < 1 and not all(sides):
        side = "test" if sides[0] else "train"
        warnings.warn(f"{side} is empty: there are few tasks, or few prompts ({size} tasks)", stacklevel=2)
    return TaskSplit(tuple(sides[0]), tuple(sides[1]))
