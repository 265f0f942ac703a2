"""Errors are the environment's own: class, message, attributes."""

import pickle
from collections.abc import Iterator

import pytest
from probing import PROBE, behind, config, here

from llenvs import Action
from llenvs.container import create_container_environment
from llenvs.container.client import ContainerEnvironment
from llenvs.container.errors import RequestRefused
from llenvs.core.errors import (
    ContainerFailed,
    EpisodeOver,
    InvalidAction,
    InvalidOption,
    TaskIndexOutOfRange,
    UnknownAdapter,
    UnknownEnvironment,
    UnknownOption,
    UpstreamFailed,
)


@pytest.fixture(scope="module")
def env() -> Iterator[ContainerEnvironment]:
    with behind() as made:
        yield made


@pytest.mark.parametrize(
    ("arguments", "cls"),
    [
        ({"options": {"task_index": 5}}, TaskIndexOutOfRange),
        ({"options": {"task_index": -1}}, TaskIndexOutOfRange),
        ({"options": {"task_index": True}}, InvalidOption),
        ({"options": {"task_index": "1"}}, InvalidOption),
        ({"options": {"task_idx": 1}}, UnknownOption),
        ({"options": {"task_idx": object()}}, UnknownOption),
        ({"options": {"task_index": object()}}, InvalidOption),
        ({"options": [1]}, InvalidOption),
        ({"seed": "x"}, InvalidOption),
        ({"seed": 1.5}, InvalidOption),
    ],
)
def test_reset_refuses_in_the_same_words(env, arguments, cls):
    with pytest.raises(cls) as there:
        env.reset(**arguments)
    with pytest.raises(cls) as wanted:
        here().reset(**arguments)
    assert type(there.value) is type(wanted.value)
    assert str(there.value) == str(wanted.value)
    assert vars(there.value).keys() == vars(wanted.value).keys()
    assert str(pickle.loads(pickle.dumps(there.value))) == str(wanted.value)  # noqa: S301


def test_attributes_come_through(env):
    with pytest.raises(TaskIndexOutOfRange) as caught:
        env.reset(options={"task_index": 99})
    assert (caught.value.task_index, caught.value.size) == (99, 5)
    with pytest.raises(UnknownOption) as unknown:
        env.reset(options={"task_idx": 1})
    assert unknown.value.suggestions == ("task_index",)


def test_a_terminal_state_cannot_be_stepped(env):
    state, _ = env.reset(options={"task_index": 1})
    final = env.step(state, Action("7")).next_state
    with pytest.raises(EpisodeOver, match="over after 1 step"):
        env.step(final, Action("7"))
    with pytest.raises(InvalidAction, match="use Action"):
        env.step(state, "7")  # type: ignore[arg-type]
    with pytest.raises(InvalidAction, match="returns \\(state, info\\)"):
        env.step((state, {}), Action("7"))  # type: ignore[arg-type]


def test_what_the_benchmark_raises_is_an_upstream_failure(env):
    state, _ = env.reset(options={"task_index": 1})
    with pytest.raises(UpstreamFailed, match=r"probe/probe: .* a step: ValueError: out of cheese") as caught:
        env.step(state, Action("raise out of cheese"))
    assert caught.value.environment == "probe/probe"
    with pytest.raises(UpstreamFailed, match="SystemExit: 3"):
        env.step(state, Action("exit"))
    assert env.step(state, Action("7")).terminated  # the server is none the worse for it


def test_an_error_class_of_the_adapter(env):
    import probe_adapter

    state, _ = env.reset(options={"task_index": 1})
    with pytest.raises(probe_adapter.ProbeTrouble, match="trouble number 7") as caught:
        env.step(state, Action("trouble 7"))
    assert caught.value.code == 7


def test_environments_that_cannot_be_built_say_why():
    wrong = [
        ({**PROBE, "sise": 3}, UnknownOption, "did you mean 'size'"),
        ({**PROBE, "size": "many"}, InvalidOption, "size"),
        ({**PROBE, "name": "prob"}, UnknownEnvironment, "did you mean 'probe'"),
        ({"name": "x", "adapter": "prober"}, UnknownAdapter, "did you mean 'probe'"),
    ]
    for environment, cls, message in wrong:
        with pytest.raises(cls, match=message):
            create_container_environment(environment, config())


def test_options_that_cannot_be_sent():
    with pytest.raises(InvalidOption, match="answer_extractor: cannot be sent to a server"):
        behind(answer_extractor=lambda text: text)
    with pytest.raises(UnknownOption, match="did you mean 'runtime'"):
        create_container_environment(PROBE, {"runtme": "process"})
    with pytest.raises(InvalidOption, match="runtime"):
        create_container_environment(PROBE, "procss")


def test_a_request_over_the_limit_is_refused_before_it_is_sent(env):
    state, _ = env.reset(options={"task_index": 1})
    with pytest.raises(RequestRefused, match="exceeds the server's limit of 33554432"):
        env.step(state, Action("x" * (33 << 20)))
    assert env.step(state, Action("7")).terminated


def test_after_close_it_says_so():
    env = behind()
    env.close()
    env.close()
    with pytest.raises(ContainerFailed, match="closed"):
        env.reset()
