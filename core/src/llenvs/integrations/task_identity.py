"""Which task a row of a training set is, so that it can be scored against no other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.encoding import dumps
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.core.observation import Observation
from llenvs.core.registry import environment_registry

_KEYS = ("env", "task_index", "prompt_sha256")


class TaskMismatch(LLEnvsError):
    """A row belongs to another task than the one it was to be scored against: their prompts differ.

    It happens when a data set was made with other options, another version of the benchmark, or by a benchmark
    whose tasks depend on the process (a hash seed, the number of tasks).
    """

    def __init__(self, environment: str, task_index: int) -> None:
        super().__init__(
            f"{environment}: task {task_index} has another prompt here than in the data set it comes from; make "
            "the data set again with the options and versions that score it"
        )


def prompt_sha256(observation: Observation) -> str:
    """SHA-256 (64 hex digits) of all that the model may see of a task.

    Of a plain prompt, of the prompt's UTF-8; of anything more, of the observation's JSON.
    """
    plain = not (observation.task or observation.messages or observation.images or observation.available_tools)
    text = observation.prompt if plain else dumps(observation)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """A task of an environment that another process can make.

    Attributes:
        env: the environment's address, ``adapter/name``.
        task_index: which of its tasks.
        prompt_sha256: see the function of this name.
        options: of the environment.
        seed: what the episode is reset with.
    """

    env: str
    task_index: int
    prompt_sha256: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def to_json(self) -> str:
        """One line of JSON, as it stands in the column ``llenvs`` of a data set.

        Raises:
            InvalidOption: an option of the environment has no JSON form.
        """
        tail = identity_tail(self.env, self.options, self.seed)
        return identity_line(self.task_index, self.prompt_sha256, tail)

    @classmethod
    def from_json(cls, text: str) -> TaskIdentity:
        """The identity that `to_json` wrote.

        Raises:
            InvalidOption: `text` is not that.
        """
        try:
            found = json.loads(text)
            env, index, digest = (found[key] for key in _KEYS)
            made = cls(env, index, digest, dict(found.get("options", {})), found.get("seed", 0))
            if not (isinstance(env, str) and isinstance(digest, str) and type(index) is type(made.seed) is int):
                raise TypeError("fields of other types")
            return made
        except (TypeError, ValueError, KeyError, AttributeError):
            raise InvalidOption(
                "llenvs", text, "is no task identity, as DatasetProvider writes it", valid=f"JSON with {_KEYS}"
            ) from None

    def make(self) -> Environment[Any]:
        """The environment, made anew."""
        return environment_registry.get(self.env, **self.options)


def identity_tail(env: str, options: Mapping[str, Any], seed: int) -> str:
    """The part of `TaskIdentity.to_json` that all tasks of an environment share."""
    try:
        written = json.dumps({"env": env, "options": dict(options), "seed": seed}, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            f"{env}: options", dict(options), f"must be plain JSON to be part of a data set ({error})"
        ) from None
    return written[1:]


def identity_line(task_index: int, prompt_sha256: str, tail: str) -> str:
    """`TaskIdentity.to_json` of a task, `tail` being what `identity_tail` gave."""
    return f'{{"task_index": {task_index}, "prompt_sha256": "{prompt_sha256}", {tail}'


def environment_origin(environment: Environment[Any]) -> tuple[str, dict[str, Any]]:
    """Address and options of `environment`, the container it runs in among them."""
    origin = environment.origin
    if origin is None:
        return environment.spec.id, {}
    options = dict(origin.options)
    if origin.container is not None:
        options["container"] = origin.container
    return origin.address, options
