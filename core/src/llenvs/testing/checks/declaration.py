"""What an environment says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from llenvs.core.encoding import dumps, loads
from llenvs.core.environment import EnvironmentSpec
from llenvs.core.errors import EncodingFailed, UnknownEnvironment, UnknownOption
from llenvs.core.registry import environment_registry, make
from llenvs.testing.check import NotApplicable, check
from llenvs.testing.subject import Subject


@check("the spec is right: name, limits, turns, tools, images", needs=["episode"])
def spec(subject: Subject) -> Iterator[str]:
    """The declaration beside what the walks met."""
    env = subject.environment
    said = env.spec
    if not isinstance(said, EnvironmentSpec) or not said.name or not said.adapter or "/" in said.adapter:
        yield f"spec must be an EnvironmentSpec with a name and an adapter, is {said!r}"
        return
    if subject.address is not None and said.id != subject.address.replace("-", "_") and said.id != subject.address:
        yield f"spec.id is {said.id!r}, but the environment was made as {subject.address!r}"
    limit = said.max_steps
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        yield f"spec.max_steps must be None or a positive integer, is {limit!r}"
    if not said.is_multi_turn and limit is not None and limit != 1:
        yield f"spec.is_multi_turn is False, but max_steps is {limit}"
    if not said.is_multi_turn and any(not step.result.done for step in subject.steps):
        yield "spec.is_multi_turn is False, but an episode went on after the first step"
    if said.is_multi_turn and limit == 1:
        yield "spec.is_multi_turn is True, but max_steps is 1"
    try:
        loads(dumps(said))
    except EncodingFailed as error:
        yield f"spec has no JSON: {error}"
    yield from _offers(subject)


def _offers(subject: Subject) -> Iterator[str]:
    said = subject.environment.spec
    observations = [state.observation for walk in subject.walks for state in walk.states]
    offered = {tool.name for observation in observations for tool in observation.available_tools}
    declared = {tool.name for tool in subject.environment.available_tools}
    if (offered or declared) and not said.supports_tools:
        yield f"spec.supports_tools is False, but there are tools: {', '.join(sorted(offered | declared))}"
    if offered - declared:
        yield f"observations offer tools that available_tools lacks: {', '.join(sorted(offered - declared))}"
    if not said.supports_images and any(o.images or any(m.images for m in o.messages) for o in observations):
        yield "spec.supports_images is False, but an observation has images"


@check("an unknown option and an unknown name are refused with the nearest ones", needs=["create"])
def unknown_options(subject: Subject) -> Iterator[str]:
    """An option of the environment with a letter too much, and its name likewise."""
    if subject.address is None:
        raise NotApplicable("needs the address of the environment, the kit got a function")
    options = dict(subject.options or {})
    for known in environment_registry.describe(subject.address).options:
        wrong = f"{known.name}x"
        try:
            make(subject.address, **{**options, wrong: 1})
        except UnknownOption as error:
            if known.name not in error.suggestions:
                yield f"the error for option {wrong!r} does not suggest {known.name!r}: {error}"
        else:
            yield f"the unknown option {wrong!r} was accepted"
    adapter, _, name = subject.address.partition("/")
    try:
        make(f"{adapter}/{name}x", **options)
    except UnknownEnvironment as error:
        if name not in error.suggestions:
            yield f"the error for {name + 'x'!r} does not suggest {name!r}: {error}"
    else:
        yield f"the unknown environment {name + 'x'!r} was accepted"
