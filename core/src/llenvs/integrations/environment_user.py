"""Objects that use an environment, and close it when it was made for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llenvs.core.closing import Closing
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption
from llenvs.core.options import parse_options
from llenvs.core.registry import make
from llenvs.core.segmentation.build import segmented_environment
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.evaluation.config import EnvironmentConfig


class EnvironmentUser(Closing):
    """Holds `env`; a context manager.

    Args:
        env: an environment, or its address ``adapter/name``; then this object closes it.
        options: of the environment, when `env` is an address.

    Raises:
        InvalidOption: it is neither, or has options of its own.
    """

    def __init__(self, env: Environment[Any] | str, options: Mapping[str, Any] | None) -> None:
        if isinstance(env, str):
            self.env, self._owned = make(env, **(options or {})), True
        elif not isinstance(env, Environment):
            raise InvalidOption("env", env, 'must be an Environment or "adapter/name"')
        elif options:
            raise InvalidOption("options", dict(options), "go with an address, not with an environment")
        else:
            self.env, self._owned = env, False

    def close(self) -> None:
        """Close the environment if it was made for this object."""
        if self._owned:
            self.env.close()


def takes_one_response(env: Environment[Any]) -> bool:
    """Whether a single response is a whole episode: of one turn, or the segments of one turn."""
    whole = env.base_env if isinstance(env, SegmentedEnvironment) else env
    return not whole.spec.is_multi_turn


def check_whole_turns(env: Environment[Any] | None) -> None:
    """Refuse what a loop of whole responses cannot play.

    Raises:
        InvalidOption: `env` is segmented.
    """
    if isinstance(env, SegmentedEnvironment):
        raise InvalidOption(
            "env",
            env.spec.id,
            "is segmented, and a turn of a trainer is a whole response",
            valid="env.base_env; for the rewards of segments a reward function, or Scorer",
        )


def configured_environment(config: Any) -> tuple[Environment[Any], EnvironmentConfig]:
    """The environment of an entry of ``environments:`` in a YAML (a mapping or an `EnvironmentConfig`).

    Raises:
        UnknownOption, InvalidOption: the entry is none.
    """
    if isinstance(config, EnvironmentConfig):
        parsed = config
    elif isinstance(config, Mapping):
        parsed = parse_options(EnvironmentConfig, config, "environment")
    else:
        raise InvalidOption("config", config, "must be a mapping with a name")
    address = parsed.name if parsed.adapter is None else f"{parsed.adapter}/{parsed.name}"
    environment = make(address, container=parsed.container, **parsed.environment_options)
    if parsed.segmentation is None:
        return environment, parsed
    try:
        return segmented_environment(environment, parsed.segmentation), parsed
    except Exception:
        environment.close()
        raise
