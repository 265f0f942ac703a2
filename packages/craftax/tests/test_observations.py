"""How states are shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from craftax_play import SCRIPT, Alone, Make, play

from llenvs import Action, State
from llenvs_craftax.environment import CraftaxEnvironment
from llenvs_craftax.scene import _FULL_MOBS, Mob, Scene, scene
from llenvs_craftax.sections import compressed
from llenvs_craftax.wording import describe, way


def changed(env: CraftaxEnvironment, state: State[Any], **values: Any) -> State[Any]:
    """`state` with other values in some of its arrays."""
    raw = env._ready(state.hidden).raw.copy()
    record = raw[: env._game.layout.size].view(env._game.layout.dtype)
    for name, value in values.items():
        record[name.replace("__", ".")][0] = value
    return replace(state, hidden={**state.hidden, "arrays": compressed(env._game, raw, {})})


def seen(env: CraftaxEnvironment, state: State[Any]) -> Scene:
    return scene(env._game.upstream, env._record(env._ready(state.hidden)))


def test_classic_in_words(classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=0)
    assert state.observation.prompt == (
        "You face up: grass.\n"
        "Next to you: left grass, right grass, up grass, down tree. You stand on grass.\n"
        "In view, nearest first: tree 1 down (7 tiles); sand 2 left, 3 up; water 2 right, 3 up (2 tiles); "
        "path 3 right, 2 up; stone 4 right, 1 up (5 tiles).\n"
        "Health 9/9, food 9/9, drink 9/9, energy 9/9. Daylight 80 %.\n"
        "You carry: nothing."
    )
    _, results = play(classic, *SCRIPT, seed=0)
    assert results[-1].next_state.observation.prompt.endswith("You carry: 1 wood, 1 sapling.")


def test_the_view_of_classic_is_the_upstreams(classic: CraftaxEnvironment) -> None:
    state, _ = classic.reset(seed=1)
    for action in ("right",) * 30 + ("down",) * 30:
        state = classic.step(state, Action(action)).next_state
    shown = classic.symbolic_observation(state)[: 7 * 9 * 21].reshape(7, 9, 21)
    names = classic._game.upstream.blocks
    assert seen(classic, state).blocks == tuple(
        tuple(names[b] for b in row) for row in shown[:, :, :17].argmax(-1)
    )
    mobs = {(int(r) - 3, int(c) - 4): k for r, c, k in zip(*shown[:, :, 17:].nonzero(), strict=True)}
    ours = {
        mob.offset: ("zombie", "cow", "skeleton", "arrow").index(mob.name) for mob in seen(classic, state).mobs
    }
    assert ours == mobs


def test_the_view_of_full_is_the_upstreams(full: CraftaxEnvironment) -> None:
    from craftax.craftax.constants import BlockType, ItemType

    state, _ = full.reset(seed=5)
    for action in ("left",) * 12 + ("up",) * 12:
        state = full.step(state, Action(action)).next_state
    arrays, beside = full.arrays(state), np.add(state.metadata.info["position"], (0, 2))
    for mobs, kind in (("passive_mobs", 2), ("player_projectiles", 3)):
        for what, value in (("mask", True), ("position", beside), ("type_id", kind)):
            arrays[f"{mobs}.{what}"][0, 0] = value
        changes = {f"{mobs}__{what}": arrays[f"{mobs}.{what}"] for what in ("mask", "position", "type_id")}
        state = changed(full, state, **changes)
    observed = full.symbolic_observation(state)[: 9 * 11 * 83].reshape(9, 11, 83)
    blocks, items = len(BlockType), len(ItemType)
    ours, lit = seen(full, state), observed[:, :, -1] > 0
    for row, column in np.ndindex(9, 11):
        shown, offset = observed[row, column], (int(row) - 4, int(column) - 5)
        if not lit[row, column]:
            assert ours.block(offset) is None
            continue
        assert ours.block(offset) == BlockType(shown[:blocks].argmax()).name.lower()
        item = ItemType(shown[blocks : blocks + items].argmax()).name.lower()
        assert [name for name, where in ours.items if where == offset] == ([] if item == "none" else [item])
        mobs = shown[blocks + items : -1].reshape(5, 8).nonzero()
        names = [_FULL_MOBS[k][2] + _FULL_MOBS[k][1][kind] for k, kind in zip(*mobs, strict=True)]
        assert sorted(mob.name for mob in ours.mobs if mob.offset == offset) == sorted(names)
    assert {"snail", "own iceball"} <= {mob.name for mob in ours.mobs}


def test_full_in_words(full: CraftaxEnvironment) -> None:
    state, _ = full.reset(seed=0)
    prompt = state.observation.prompt
    assert prompt.startswith("You face up: tree.\nNext to you: left tree, right grass, up tree, down grass.")
    assert "health 9/9, food 9/9, drink 9/9, energy 9/9, mana 9/9" in prompt.lower()
    assert "Experience 0, dexterity 1, strength 1, intelligence 1." in prompt
    assert prompt.endswith("Floor 0, overworld. The way down is open.")


def test_full_below_ground(full: CraftaxEnvironment) -> None:
    """A state that takes long to reach is made: in the dark, armed, with a creature beside."""
    state, _ = full.reset(seed=0)
    arrays = full.arrays(state)
    light, mask, position = arrays["light_map"] * 0, arrays["melee_mobs.mask"], arrays["melee_mobs.position"]
    light[2, 9:12, 9:12] = 1.0
    world = arrays["map"].astype(np.uint8)
    world[2, 9:12, 9:12] = 7  # path
    items = arrays["item_map"].astype(np.uint8)
    items[2, 9, 10] = 2  # ladder down
    mask[2, 0], position[2, 0] = True, (10, 11)
    kinds = arrays["melee_mobs.type_id"]
    kinds[2, 0] = 1
    potions = arrays["inventory.potions"]
    potions[3] = 2
    made = changed(
        full, state, map=world, item_map=items, light_map=light, player_level=2, player_position=(10, 10),
        player_health=6.5, melee_mobs__mask=mask, melee_mobs__position=position, melee_mobs__type_id=kinds,
        inventory__sword=3, sword_enchantment=1, inventory__armour=(0, 2, 0, 0), inventory__potions=potions,
        melee_mobs__health=arrays["melee_mobs.health"] * 0 + 4.5, learned_spells=(True, False), is_resting=True,
        player_direction=2,
    )  # fmt: skip
    prompt = describe(seen(full, made), show_map=True, mob_health=True)
    assert prompt.startswith("You face right: gnome warrior on path.")
    assert "up closed ladder down on path" in prompt
    assert "gnome warrior 1 right (health 4.5)" in prompt
    assert "90 tiles too dark to see" in prompt
    assert "Health 6.5/9" in prompt
    assert (
        "You carry: 2 pink potion, iron sword with fire enchantment, diamond chestplate, the spell fireball."
        in prompt
    )
    assert "Floor 2, gnomish mines. The way down is closed." in prompt
    assert "You are resting: until that ends, every action is a noop." in prompt
    assert "    _>_    \n    _@1    \n    ___    " in prompt
    shown = full.step(made, Action("left"))
    assert shown.info["floor"] == 2


def test_json(make: Make) -> None:
    env = make("craftax-classic", show_mob_health=True)
    state = env.reset(seed=1)[0]
    for _ in range(40):
        state = env.step(state, Action("left")).next_state
    shown = json.loads(state.observation.prompt)
    assert list(shown) == ["facing", "view", "mobs", "vitals", "inventory", "daylight", "sleeping"]
    assert shown["facing"] == "left"
    assert (len(shown["view"]), {len(row) for row in shown["view"]}) == (7, {9})
    ours = seen(env, state)
    assert [tuple(row) for row in shown["view"]] == list(ours.blocks)
    assert shown["mobs"] == [
        {"name": mob.name, "dx": mob.offset[1], "dy": mob.offset[0], "health": mob.health} for mob in ours.mobs
    ]


def test_json_of_full(make: Make) -> None:
    shown = json.loads(make("craftax-symbolic").reset(seed=0)[0].observation.prompt)
    assert shown["floor"] == 0
    assert shown["ladder_open"] is True
    assert shown["vitals"]["mana"] == [9, 9]
    assert shown["view"][3][3:9] == ["tree", "tree", "tree", "grass", "grass", "tree"]


def test_sleep_is_told(make: Make, classic: CraftaxEnvironment) -> None:
    tired = changed(classic, classic.reset(seed=0)[0], player_energy=5)
    asleep = classic.step(tired, Action("sleep")).next_state
    assert asleep.observation.prompt.endswith("You are asleep: until that ends, every action is a noop.")
    assert classic.step(asleep, Action("left")).info["position"] == [32, 32]
    assert classic.step(tired, Action("left")).info["position"] == [32, 31]
    drawn = make("craftax-classic-pixels").step(tired, Action("sleep")).next_state
    assert drawn.observation.prompt.startswith("You are asleep")


def test_additions_are_asked_for(make: Make) -> None:
    plain = make("craftax-classic-text", instructions=False)
    assert plain.reset(seed=0)[0].observation.task is None
    env = make("craftax-classic-text", show_map=True, show_position=True, show_achievements=True)
    _, results = play(env, *SCRIPT, seed=0)
    lines = results[-1].next_state.observation.prompt.split("\n")
    assert lines[:2] == ["New achievement: collect wood.", "Achievements so far: collect wood, collect sapling."]
    assert "You are at row 32, column 32 of the map." in lines
    assert lines[lines.index("Map:") + 4] == "T...@...."
    _, without = play(plain, *SCRIPT, seed=0)
    assert "achievement" not in without[-1].next_state.observation.prompt.lower()


def test_the_task_names_the_actions(classic: CraftaxEnvironment, full: CraftaxEnvironment) -> None:
    for env in (classic, full):
        task = env.reset(seed=0)[0].observation.task
        assert task is not None
        assert f"Actions: {', '.join(env.actions)}." in task


@pytest.mark.parametrize(
    ("offset", "words"), [((0, -2), "2 left"), ((-1, 3), "3 right, 1 up"), ((4, 0), "4 down"), ((0, 0), "here")]
)
def test_ways(offset: tuple[int, int], words: str) -> None:
    assert way(offset) == words


def test_edges_of_the_map(classic: CraftaxEnvironment) -> None:
    state = changed(classic, classic.reset(seed=0)[0], player_position=(0, 63))
    blocks = seen(classic, state).blocks
    assert all(blocks[row][column] == "out_of_bounds" for row in range(3) for column in range(9))
    assert all(blocks[row][column] == "out_of_bounds" for row in range(7) for column in range(5, 9))
    assert "out_of_bounds" not in {blocks[3][4], blocks[6][0]}


def test_creatures_are_told_nearest_first() -> None:
    row = ("grass",) * 3
    here = Scene(
        (row,) * 3, (), (Mob("cow", (0, 1), 3.0), Mob("zombie", (1, 1), 5.0)), (1, 1), "right", {}, {}, {}, (), 1.0
    )
    assert "In view, nearest first: cow 1 right; zombie 1 right, 1 down." in describe(here)
    assert describe(here).startswith("You face right: cow on grass.")


def test_images_are_the_upstreams(make: Make, capfd: Any) -> None:
    from PIL import Image

    env = make("craftax-classic-pixels")
    state, (result,) = play(env, "left", seed=0)
    assert env.spec.supports_images
    upstream = env._game.upstream
    alone = Alone(env, 0)
    alone.step(1)
    textures = upstream.constants.load_all_textures_given_size(16)
    original = upstream.renderer.load_all_textures
    upstream.renderer.load_all_textures = lambda: {16: textures}
    try:
        draw = alone.jax.jit(upstream.renderer.make_craftax_pixel_renderer(16))
    finally:
        upstream.renderer.load_all_textures = original
    (image,) = result.next_state.observation.images
    shown = Image.open(io.BytesIO(image.data or b""))
    assert shown.size == (144, 144)
    assert np.array_equal(np.asarray(shown), np.asarray(draw(alone.state)).astype(np.uint8))
    assert state.observation.images != result.next_state.observation.images
    assert capfd.readouterr().out == ""


def test_images_of_full(make: Make) -> None:
    from PIL import Image

    env = make("craftax-pixels", tile_size=10)
    (image,) = env.reset(seed=0)[0].observation.images
    shown = Image.open(io.BytesIO(image.data or b""))
    assert (shown.size, shown.mode) == ((110, 130), "RGB")
    tiles = np.asarray(shown)[:90].reshape(9, 10, 11, 10, 3).swapaxes(1, 2)
    blocks = seen(env, env.reset(seed=0)[0]).blocks
    assert (tiles[0, 0] == tiles[8, 10]).all()  # both are stone
    assert blocks[0][0] == blocks[8][10] == "stone"
    assert (tiles[3, 3] == tiles[3, 4]).all()  # trees
    assert not (tiles[0, 0] == tiles[3, 3]).all()
