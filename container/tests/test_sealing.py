"""Sealed hidden state: unreadable outside of the server, unalterable, bound to its environment and key."""

from dataclasses import replace

import pytest
from probing import behind, config, here, serving

from llenvs import Action, State
from llenvs.container.errors import StateRefused
from llenvs.core.errors import InvalidOption
from llenvs.core.state import SealedHidden
from llenvs_container.sealing import Sealer, read_key

ENVIRONMENT = {"name": "probe", "adapter": "probe"}


def test_an_episode_with_sealed_states():
    local = here()
    with behind(config(seal=True, replicas=2)) as env:
        assert env.is_sealed
        state, _ = env.reset(seed=1000, options={"task_index": 2})
        plain, _ = local.reset(seed=1000, options={"task_index": 2})
        assert isinstance(state.hidden, SealedHidden)
        assert b"1014" not in state.hidden.data
        assert "1014" not in state.to_json()
        assert (state.observation, state.metadata) == (plain.observation, plain.metadata)
        assert env.reset(seed=1000, options={"task_index": 2})[0] == state  # equal seeds, equal states
        assert env.reset(seed=1000, options={"task_index": 3})[0].hidden != state.hidden

        copy = State.from_json(state.to_json())
        for each in (state, copy, copy):  # a state is a value: using it again is no offence
            result, wanted = env.step(each, Action("5")), local.step(plain, Action("5"))
            assert result.rewards == wanted.rewards
            assert result.next_state.observation == wanted.next_state.observation
            assert isinstance(result.next_state.hidden, SealedHidden)
        assert env.step(result.next_state, Action("1014")).terminated
        assert env.compute_rewards(copy, Action("5"), result.next_state) == wanted.rewards

        altered = [
            replace(copy, hidden=SealedHidden(copy.hidden.data[:-1] + bytes([copy.hidden.data[-1] ^ 1]))),
            replace(copy, hidden=SealedHidden(b"")),
            replace(copy, hidden=SealedHidden(copy.hidden.data[:20])),
            replace(copy, hidden=plain.hidden),
            replace(copy, hidden=result.next_state.hidden),
            replace(copy, observation=replace(copy.observation, prompt="Your last guess?")),
            replace(copy, metadata=replace(copy.metadata, step=3)),
            replace(copy, metadata=replace(copy.metadata, info={})),
            replace(result.next_state, metadata=copy.metadata),
        ]
        for state in altered:
            with pytest.raises(StateRefused):
                env.step(state, Action("5"))
        with behind(config(seal=True)) as other, pytest.raises(StateRefused, match="another key"):
            other.step(copy, Action("5"))


def test_a_server_of_someone_else_that_does_not_seal_is_refused(tmp_path):
    with (
        serving() as server,
        pytest.raises(InvalidOption, match="probe/probe does not seal; start it with --seal-key-file"),
    ):
        behind(config(runtime="url", url=server.address, env={}, seal=True))
    with (
        serving("--seal-key-file", str(tmp_path / "key")) as server,
        behind(config(runtime="url", url=server.address, env={}, seal=True)) as env,
    ):
        state, _ = env.reset(options={"task_index": 2})
        assert isinstance(state.hidden, SealedHidden)
        assert env.step(state, Action("14")).terminated


def test_states_outlive_a_restart():
    with behind(config(seal=True)) as env:
        state, _ = env.reset(options={"task_index": 2})
        (replica,) = env._replicas._slots
        replica.server.stop()
        assert env.step(state, Action("14")).terminated


def test_a_state_belongs_to_its_environment():
    state, _ = here().reset(options={"task_index": 2})
    key = bytes(range(64))
    sealed = Sealer(key, ENVIRONMENT).seal(state, '{"number":14}')
    assert Sealer(key, dict(reversed(ENVIRONMENT.items()))).unseal(sealed).hidden == {"number": 14}
    for sealer in (Sealer(key, {**ENVIRONMENT, "size": 5}), Sealer(bytes(64), ENVIRONMENT)):
        with pytest.raises(StateRefused):
            sealer.unseal(sealed)


def test_the_key_of_a_sealed_state_tells_nothing_of_what_is_hidden():
    """Keys are made of what leaves the server: one of open hidden state would let a client test its guesses."""
    from llenvs.container.wire import StateText

    with behind(config(seal=True)) as env:
        state, _ = env.reset(options={"task_index": 2})
        known = env._known.find(state)
        assert known is not None
        assert known.key == StateText.of(state).key()


def test_the_key_file(tmp_path):
    path = tmp_path / "key"
    key = read_key(path)
    assert len(key) == 64
    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(InvalidOption, match="64 random bytes"):
        read_key(tmp_path / "short")
    with pytest.raises(InvalidOption, match="cannot be made"):
        read_key(tmp_path / "no" / "key")
