"""The compiled games: one of each a process, shared by all environments."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from llenvs_craftax.compilation import announce, compiling
from llenvs_craftax.layout import Layout
from llenvs_craftax.upstream import Upstream, settings
from llenvs_craftax.variants import VariantName

# bytes after a state: reward (float32, little-endian), whether the upstream ended the episode, and which sections
# the step changed (a bit each)
_TAIL = 6
_INPUTS = 5  # numbers before the parameters: key (2), branch, mode, action
KEY_MODES = ("timestep", "state_rng")
_MASK = 0xFFFFFFFF


class Outcome:
    """A state that the game led to.

    Attributes:
        row: the bytes on the device, for the next step.
        raw: the same as a numpy array (read-only).
    """

    __slots__ = ("_size", "raw", "row")

    def __init__(self, row: Any, size: int) -> None:
        self.row = row
        self.raw = np.asarray(row)
        self._size = size

    @property
    def reward(self) -> float:
        """The upstream's reward of the step that led here."""
        return float(self.raw[self._size : self._size + 4].view("<f4")[0])

    @property
    def done(self) -> bool:
        """Whether the upstream ended the episode."""
        return bool(self.raw[self._size + 4])

    @property
    def changed(self) -> int:
        """Which sections differ from those of the state before: bit i is set for the i-th."""
        return int(self.raw[self._size + 5])


class Game:
    """One game: its names, its layout, and its compiled programs, which are made when first needed."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._programs: dict[Any, Any] = {}
        self._lock = threading.RLock()

    @cached_property
    def layout(self) -> Layout:
        """Where the arrays of the state stand."""
        return self._traced[0]

    def parameters(self, changes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """The upstream's parameters with some changed, as `reset` and `step` take them."""
        import jax

        leaves = jax.tree.leaves(self.upstream.env.default_params.replace(**changes))
        typed = [np.asarray(leaf, kind) for leaf, kind in zip(leaves, self._kinds, strict=True)]
        return np.array([int(leaf) if leaf.dtype == bool else leaf.view(np.uint32) for leaf in typed], np.uint32)

    def reset(self, seed: int, parameters: np.ndarray[Any, Any]) -> Outcome:
        """The world of `seed`."""
        program = self._program("reset", self._reset, "control")
        return self._outcome(program(_control(parameters, seed)))

    def step(
        self, row: Any, seed: int, action: int, mode: int, branch: int, parameters: np.ndarray[Any, Any]
    ) -> Outcome:
        """What `action` leads to in the state whose bytes are `row` (on the device, or as numpy array).

        Args:
            row: bytes of a state as in an `Outcome` (see `padded`).
            seed: of the episode.
            action: the upstream's number.
            mode: place in `KEY_MODES`.
            branch: another number, other chance; 0 for that of the seed alone.
            parameters: as `parameters` gave them.
        """
        program = self._program("step", self._step, "row", "control")
        return self._outcome(program(row, _control(parameters, seed, branch, mode, action)))

    def step_many(
        self, rows: Any, seeds: Any, actions: Any, mode: int, branches: Any, parameters: Any
    ) -> list[Outcome]:
        """`step` for several states at once; each number of states is compiled for itself."""
        import jax

        count = len(rows)
        inputs = zip(seeds, branches, actions, strict=True)
        controls = np.stack([_control(parameters, seed, branch, mode, action) for seed, branch, action in inputs])
        program = self._program(("step", count), jax.vmap(self._step), "row", "control", count=count)
        made = np.array(program(np.stack(rows), controls))
        records = made[:, : self.layout.size].view(self.layout.dtype)[:, 0]
        for place in range(count):
            records["light_level"][place] = self._light(int(records["timestep"][place]), parameters)
        return [self._outcome(row.copy()) for row in made]

    def _light(self, timestep: int, parameters: Any) -> Any:
        """The daylight, whose last digit depends on how many are computed together (it is made of a cosine)."""
        program = self._program("light", self._daylight, "control")
        return np.asarray(program(_control(parameters, action=timestep)))

    def observe(self, row: Any) -> np.ndarray[Any, Any]:
        """The upstream's symbolic observation: float32, 1345 numbers (Classic) or 8268."""
        program = self._program("observe", self._observe, "row")
        return np.asarray(program(row))

    def draw(self, row: Any, tile_size: int) -> np.ndarray[Any, Any]:
        """The upstream's image: uint8, height x width x 3."""
        key = ("draw", tile_size)
        if key not in self._programs:
            from llenvs_craftax.textures import pixel_renderer

            with self._lock:
                render = pixel_renderer(self.upstream, tile_size)
                self._program(key, lambda row: self._draw(render, row), "row")
        return np.asarray(self._programs[key](row))

    def padded(self, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """`raw` of a state alone with the bytes that follow it in an `Outcome`."""
        row = np.zeros(self.layout.size + _TAIL, dtype=np.uint8)
        row[: self.layout.size] = raw
        return row

    # -- what is traced -----------------------------------------------------------------------------------

    def _reset(self, control: Any) -> Any:
        import jax

        _, state = self.upstream.env.reset_env(control[:2], self._parameters(control))
        return self._row(jax.lax.optimization_barrier(state), 0.0, False, None)

    def _step(self, row: Any, control: Any) -> Any:
        import jax
        import jax.numpy as jnp

        state, parameters = self._state(row), self._parameters(control)
        branch, mode, action = control[2], control[3], control[4].astype(jnp.int32)
        key = jnp.where(mode == 0, jax.random.fold_in(control[:2], state.timestep), state.state_rng)
        key = jnp.where(branch == 0, key, jax.random.fold_in(key, branch))
        # The barriers keep the compiler from merging the upstream's arithmetic with our packing, which would
        # change last digits.
        key, state, action, parameters = jax.lax.optimization_barrier((key, state, action, parameters))
        _, after, reward, done, _ = self.upstream.env.step_env(key, state, action, parameters)
        after, reward, done = jax.lax.optimization_barrier((after, reward, done))
        return self._row(after, reward, done, row)

    def _daylight(self, control: Any) -> Any:
        import jax

        inputs = control[4].astype(np.int32), self._parameters(control)
        return self.upstream.logic.calculate_light_level(*jax.lax.optimization_barrier(inputs))

    def _observe(self, row: Any) -> Any:
        return self.upstream.env.get_obs(self._state(row))

    def _draw(self, render: Callable[[Any], Any], row: Any) -> Any:
        return render(self._state(row)).astype(np.uint8)

    def _state(self, row: Any) -> Any:
        import jax

        return jax.tree.unflatten(self._traced[1], self.layout.unpack(row))

    def _parameters(self, control: Any) -> Any:
        """The upstream's parameters, from the numbers in `control`."""
        import jax
        from jax import lax

        words = control[_INPUTS:]
        leaves = [
            words[place] != 0 if kind == np.bool_ else lax.bitcast_convert_type(words[place], kind)
            for place, kind in enumerate(self._kinds)
        ]
        return jax.tree.unflatten(jax.tree.structure(self.upstream.env.default_params), leaves)

    def _row(self, state: Any, reward: Any, done: Any, before: Any) -> Any:
        """The bytes of a state and of what came with it; `before` are those of the state before, if any."""
        import jax
        import jax.numpy as jnp
        from jax import lax

        row = self.layout.pack(jax.tree.leaves(state))
        changed = jnp.uint8(0)
        for place, (start, end) in enumerate(self.layout.sections.values()):
            differs = True if before is None else jnp.any(row[start:end] != before[start:end])
            changed = changed | jnp.where(differs, jnp.uint8(1 << place), jnp.uint8(0))
        gained = lax.bitcast_convert_type(jnp.asarray(reward, jnp.float32), jnp.uint8)
        return jnp.concatenate([row, gained, jnp.stack([jnp.asarray(done).astype(jnp.uint8), changed])])

    # -- compiling ----------------------------------------------------------------------------------------

    @cached_property
    def _traced(self) -> tuple[Layout, Any]:
        """The layout, and the upstream's tree."""
        import jax

        with settings():
            env = self.upstream.env
            _, state = jax.eval_shape(env.reset_env, np.zeros(2, np.uint32), env.default_params)
        paths = jax.tree_util.tree_flatten_with_path(state)[0]
        arrays = [(_dotted(path), leaf.dtype.str, leaf.shape) for path, leaf in paths]
        return Layout.of(arrays), jax.tree.structure(state)

    @cached_property
    def _kinds(self) -> list[Any]:
        """Types of the upstream's parameters, in the order of its tree."""
        import jax

        kinds = {bool: np.bool_, int: np.int32, float: np.float32}
        return [kinds[type(leaf)] for leaf in jax.tree.leaves(self.upstream.env.default_params)]

    def _program(self, key: Any, body: Callable[..., Any], *inputs: str, count: int = 0) -> Any:
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key)
                if program is None:
                    program = self._programs[key] = self._compiled(body, inputs, count)
        return program

    def _compiled(self, body: Callable[..., Any], inputs: tuple[str, ...], count: int) -> Any:
        import jax

        announce(self.upstream.variant)
        many = (count,) if count else ()
        kinds = {
            "row": jax.ShapeDtypeStruct((*many, self.layout.size + _TAIL), np.uint8),
            "control": jax.ShapeDtypeStruct((*many, _INPUTS + len(self._kinds)), np.uint32),
        }
        with settings(), compiling():
            return jax.jit(body).lower(*(kinds[name] for name in inputs)).compile()

    def _outcome(self, row: Any) -> Outcome:
        return Outcome(row, self.layout.size)


_games: dict[VariantName, Game] = {}
_games_lock = threading.Lock()


def game(variant: VariantName) -> Game:
    """The game of this process; the first call imports the upstream."""
    made = _games.get(variant)
    if made is None:
        with _games_lock:
            made = _games.get(variant)
            if made is None:
                made = _games[variant] = Game(Upstream.load(variant))
    return made


def _control(
    parameters: np.ndarray[Any, Any], seed: int = 0, branch: int = 0, mode: int = 0, action: int = 0
) -> np.ndarray[Any, Any]:
    """The small inputs of a program in one array: key of the seed (2), branch, mode, action, parameters.

    The key of a seed below 2**64 is that of ``jax.random.PRNGKey(seed)`` (with 64-bit integers, from 2**32 on);
    that of others is made of their digits.
    """
    if not 0 <= seed < 1 << 64:
        seed = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    control = np.empty(_INPUTS + len(parameters), dtype=np.uint32)
    control[:_INPUTS] = seed >> 32, seed & _MASK, branch, mode, action
    control[_INPUTS:] = parameters
    return control


def _dotted(path: Any) -> str:
    return ".".join(str(getattr(key, "name", key)) for key in path)
