"""Building an environment behind a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llenvs.container.config import ContainerConfig
from llenvs.core.encoding import encode
from llenvs.core.errors import EncodingFailed, InvalidOption, NotInstalled
from llenvs.core.loop import run_sync
from llenvs.core.options import parse_options
from llenvs.core.rewards import make_reward_functions

if TYPE_CHECKING:
    from llenvs.container.client import ContainerEnvironment


def create_container_environment(
    env_config: Mapping[str, Any] | str,
    container_config: ContainerConfig | Mapping[str, Any] | str = "process",
) -> ContainerEnvironment:
    """Start servers for an environment, or find one, and give the environment they serve.

    Args:
        env_config: ``{"name": ..., "adapter": ..., **options}`` as `environment_registry.get` takes them, or
            ``"adapter/name"``. For runtime "url" the server has its environment already: ``{}`` is enough, and a
            name given must be that one's. ``extra_rewards`` may hold functions: they are applied on this side.
        container_config: where and how it runs; a mapping of `ContainerConfig`'s fields, or the name of a runtime.

    Raises:
        UnknownAdapter, AdapterNotInstalled, UnknownEnvironment, UnknownOption, InvalidOption: as without a server.
        ContainerFailed: the server did not start.
        NotInstalled: the extra ``container`` is missing here.
    """
    config = container_options(container_config)
    environment = _addressed(env_config)
    rewards = make_reward_functions(environment.pop("extra_rewards", None))
    environment = {key: _plain(key, value) for key, value in environment.items()}
    try:
        from llenvs.container.client import ContainerEnvironment
        from llenvs.container.replicas import Replicas
        from llenvs.container.runtimes import runtime_for
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "websockets":
            raise
        raise NotInstalled("the client of isolated environments", "container", "websockets is missing") from None

    replicas = Replicas(runtime_for(config), environment, config)
    try:
        env = run_sync(ContainerEnvironment.connect(replicas, reward_functions=rewards))
        _check_served(env, environment)
        if config.seal and not env.is_sealed:
            raise InvalidOption(
                "container.seal", True, f"the server of {env.spec.id} does not seal; start it with --seal-key-file"
            )
    except BaseException:
        run_sync(replicas.aclose())
        raise
    return env


def container_options(value: ContainerConfig | Mapping[str, Any] | str) -> ContainerConfig:
    """`value` as a `ContainerConfig`: one already, a mapping of its fields, or the name of a runtime.

    Raises:
        UnknownOption, InvalidOption: with the field and the valid values.
    """
    if isinstance(value, ContainerConfig):
        return value
    if isinstance(value, str):
        value = {"runtime": value}
    if not isinstance(value, Mapping):
        raise InvalidOption("container", value, "must be a ContainerConfig, a mapping or the name of a runtime")
    return parse_options(ContainerConfig, value, "container")


def _addressed(env_config: Mapping[str, Any] | str) -> dict[str, Any]:
    """`env_config` as a dict whose name and adapter, where given, are apart."""
    environment = {"name": env_config} if isinstance(env_config, str) else dict(env_config)
    name, adapter = environment.get("name"), environment.get("adapter")
    if isinstance(name, str) and "/" in name:
        before, _, rest = name.partition("/")
        if adapter is None or adapter.replace("-", "_") == before.replace("-", "_"):
            environment["adapter"], environment["name"] = before, rest
    elif adapter is None:
        environment.pop("adapter", None)
    return environment


def _plain(key: str, value: Any) -> Any:
    try:
        return encode(value)
    except EncodingFailed:
        raise InvalidOption(
            key, value, "cannot be sent to a server", valid="plain data; of functions, extra_rewards alone"
        ) from None


def _check_served(env: ContainerEnvironment, environment: Mapping[str, Any]) -> None:
    for key in ("adapter", "name"):
        wanted, served = environment.get(key), getattr(env.spec, key)
        if wanted is not None and str(wanted).replace("-", "_") != served.replace("-", "_"):
            raise InvalidOption(key, wanted, f"the server serves {env.spec.id}", valid=served)
