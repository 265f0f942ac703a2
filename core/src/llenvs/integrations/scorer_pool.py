"""Scorers for rows of data sets, made when a row first names their environment, in whichever process that is."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, UnknownEnvironment
from llenvs.core.registry import make
from llenvs.integrations.checks import seconds, task_index, whole
from llenvs.integrations.scoring import Scorer
from llenvs.integrations.task_identity import TaskIdentity, environment_origin

IDENTITY = "llenvs"
"""The column of a data set that holds `TaskIdentity.to_json`."""


class ScorerPool:
    """One scorer per environment that rows name.

    Can be pickled: what trainers send to a worker process are the addresses and options, and the environments are
    made anew there.

    Args:
        env: the environment (or its address) of rows without an identity of their own; None when all rows have
            one.
        options: of `env`, when it is an address.
        scorer_options: of each `Scorer` (`max_concurrency`, `timeout`).

    Raises:
        InvalidOption: `env` is no environment, or a scorer's option is out of range.
    """

    def __init__(
        self,
        env: Environment[Any] | str | None = None,
        options: Mapping[str, Any] | None = None,
        **scorer_options: Any,
    ) -> None:
        if env is not None and not isinstance(env, Environment | str):
            raise InvalidOption("env", env, 'must be an Environment or "adapter/name"')
        if options and not isinstance(env, str):
            raise InvalidOption("options", dict(options), "go with an address, not with an environment")
        # a wrong one is said here, and not when the first row is scored
        if "max_concurrency" in scorer_options:
            whole("max_concurrency", scorer_options["max_concurrency"], at_least=1)
        seconds("timeout", scorer_options.get("timeout"))
        self._scorer_options = scorer_options
        self._default = make(env, **(options or {})) if isinstance(env, str) else env
        self._scorers: dict[str, Scorer] = {}
        self._lock = threading.Lock()

    @property
    def environment(self) -> Environment[Any] | None:
        """The environment of rows without an identity."""
        return self._default

    @property
    def name(self) -> str:
        """``llenvs_<environment>``, as a name in Python; ``llenvs`` for rows that name their own."""
        if self._default is None:
            return "llenvs"
        return "llenvs_" + "".join(c if c.isalnum() else "_" for c in self._default.spec.name)

    def find(self, row: Mapping[str, Any]) -> tuple[Scorer, int, str | None]:
        """The scorer of a row, the task's index, and the hash its prompt must have.

        Args:
            row: holds ``llenvs`` (an identity) or ``task_index``.

        Raises:
            InvalidOption: neither is there, the index is no whole number, or there is no environment for it.
        """
        text = row.get(IDENTITY)
        if text:
            identity = TaskIdentity.from_json(str(text))
            return self._of(identity), identity.task_index, identity.prompt_sha256
        index = row.get("task_index")
        if index is None:
            raise InvalidOption(
                IDENTITY, None, "is needed in every row, or task_index", valid="rows of DatasetProvider"
            )
        if self._default is None:
            raise InvalidOption("env", None, "is needed for rows that have a task_index and no identity")
        return self._made("", self._default, 0), task_index(index), None

    def close(self) -> None:
        """Close the environments that this pool made."""
        with self._lock:
            for scorer in self._scorers.values():
                scorer.close()
            self._scorers.clear()

    def _of(self, identity: TaskIdentity) -> Scorer:
        if self._default is not None:
            address, options = environment_origin(self._default)
            by_hand = self._default.origin is None and self._default.spec.id == identity.env
            if by_hand or (address == identity.env and _as_json(options) == _as_json(identity.options)):
                return self._made(f"default {identity.seed}", self._default, identity.seed)
        key = json.dumps([identity.env, dict(identity.options), identity.seed], sort_keys=True)
        return self._made(key, identity, identity.seed)

    def _made(self, key: str, of: Environment[Any] | TaskIdentity, seed: int) -> Scorer:
        with self._lock:
            if key not in self._scorers:
                environment, options = (of.env, of.options) if isinstance(of, TaskIdentity) else (of, None)
                try:
                    made = Scorer(environment, seed=seed, options=options, **self._scorer_options)
                except UnknownEnvironment as error:
                    raise InvalidOption(
                        IDENTITY,
                        environment,
                        f"is no environment that can be made here ({error})",
                        valid="rows of llenvs.make(...); for one made by hand, or segmented, give the hook the "
                        "environment itself",
                    ) from None
                self._scorers[key] = made
            return self._scorers[key]

    def __getstate__(self) -> dict[str, Any]:
        origin = None
        if self._default is not None:
            if self._default.origin is None:
                raise InvalidOption(
                    "env",
                    self._default,
                    "was made by hand, so another process cannot make it",
                    valid="an environment of llenvs.make",
                )
            origin = environment_origin(self._default)
        return {"origin": origin, "scorer_options": self._scorer_options}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        origin = state["origin"]
        if origin is None:
            self.__init__(**state["scorer_options"])  # type: ignore[misc]
        else:
            self.__init__(origin[0], origin[1], **state["scorer_options"])  # type: ignore[misc]


def _as_json(options: Mapping[str, Any]) -> str:
    """Options as a row has them: a tuple there is a list."""
    return json.dumps(dict(options), sort_keys=True, default=repr)
