"""A scene in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from llenvs_craftax.scene import DIRECTIONS, FLOORS, Mob, Offset, Scene

_LETTERS = {
    "grass": ".", "water": "~", "stone": "#", "tree": "T", "path": "_", "sand": ":", "lava": "!",
    "out_of_bounds": "X", "coal": "c", "iron": "i", "diamond": "D", "crafting_table": "t", "furnace": "f",
    "plant": "p", "ripe_plant": "P",
    "wall": "W", "wall_moss": "w", "stalagmite": "^", "sapphire": "S", "ruby": "R", "chest": "C", "fountain": "F",
    "fire_grass": ",", "ice_grass": "'", "gravel": "%", "fire_tree": "Y", "ice_shrub": "s",
    "grave": "+", "grave2": "+", "grave3": "+", "enchantment_table_fire": "E", "enchantment_table_ice": "e",
    "necromancer": "N", "necromancer_vulnerable": "n", "wood": "o", "darkness": "d", "invalid": "?",
}  # fmt: skip


def describe(
    scene: Scene, *, show_map: bool = False, show_position: bool = False, mob_health: bool = False
) -> str:
    """The scene as lines of text: what is faced and around, what is nearest, vitals, inventory."""
    lines = [_faced(scene), _around(scene), _in_view(scene, mob_health), *_state(scene)]
    if show_position:
        lines.append(f"You are at row {scene.position[0]}, column {scene.position[1]} of the map.")
    if show_map:
        lines.append(draw_map(scene))
    return "\n".join(lines)


def words(name: str) -> str:
    """An upstream's name as words."""
    return name.replace("_", " ")


@cache
def way(offset: Offset) -> str:
    """Where something is, as in "2 left, 1 up"."""
    down, right = offset
    parts = []
    if right:
        parts.append(f"{abs(right)} {'right' if right > 0 else 'left'}")
    if down:
        parts.append(f"{abs(down)} {'down' if down > 0 else 'up'}")
    return ", ".join(parts) or "here"


def _faced(scene: Scene) -> str:
    return f"You face {scene.facing}: {_what(scene, DIRECTIONS[scene.facing])}."


def _around(scene: Scene) -> str:
    sides = [f"{side} {_what(scene, offset)}" for side, offset in DIRECTIONS.items()]
    return f"Next to you: {', '.join(sides)}. You stand on {_what(scene, (0, 0))}."


def _what(scene: Scene, offset: Offset) -> str:
    """What is at a place: creature, item and block."""
    block = scene.block(offset)
    if block is None:
        return "darkness"
    parts = [mob.name for mob in scene.mobs if mob.offset == offset]
    parts += [words(_item(scene, name)) for name, where in scene.items if where == offset]
    return " on ".join([*parts, words(block)])


def _item(scene: Scene, name: str) -> str:
    return "closed_ladder_down" if name == "ladder_down" and not scene.ladder_open else name


def _in_view(scene: Scene, mob_health: bool) -> str:
    parts = [*_mobs(scene.mobs, mob_health), *_items(scene), *_blocks(scene)]
    dark = sum(row.count(None) for row in scene.blocks)
    if dark:
        parts.append(f"{dark} tiles too dark to see")
    return f"In view, nearest first: {'; '.join(parts)}." if parts else "There is nothing else in view."


def _mobs(mobs: Iterable[Mob], mob_health: bool) -> Iterator[str]:
    for mob in mobs:
        health = f" (health {number(mob.health)})" if mob_health else ""
        yield f"{mob.name} {way(mob.offset)}{health}"


def _items(scene: Scene) -> Iterator[str]:
    for name, offset in scene.items:
        yield f"{words(_item(scene, name))} {way(offset)}"


def _blocks(scene: Scene) -> Iterator[str]:
    """The nearest block of each kind but that which is stood on, with how many of the kind are in view."""
    rows = scene.blocks
    flat = [block for row in rows for block in row]
    nearest: dict[str, Offset] = {}
    for place, offset in _outwards(len(rows), len(rows[0])):
        block = flat[place]
        if block is not None and block not in nearest:
            nearest[block] = offset
    for block, offset in nearest.items():
        if offset != (0, 0):
            count = flat.count(block)
            yield f"{words(block)} {way(offset)}" + (f" ({count} tiles)" if count > 1 else "")


@cache
def _outwards(rows: int, columns: int) -> tuple[tuple[int, Offset], ...]:
    """Places of a flattened window with their offsets, the nearest first."""
    places = [
        (row * columns + column, (row - rows // 2, column - columns // 2))
        for row in range(rows)
        for column in range(columns)
    ]
    return tuple(sorted(places, key=lambda place: (abs(place[1][0]) + abs(place[1][1]), place[0])))


def _state(scene: Scene) -> Iterator[str]:
    vitals = [f"{name} {number(value)}/{most}" for name, (value, most) in scene.vitals.items()]
    yield f"{', '.join(vitals).capitalize()}. Daylight {round(100 * scene.daylight)} %."
    if scene.attributes:
        attributes = [f"{name} {value}" for name, value in scene.attributes.items()]
        yield f"{', '.join(attributes).capitalize()}."
    carried = [f"{count} {words(name)}" for name, count in scene.inventory.items()]
    yield f"You carry: {', '.join([*carried, *scene.equipment]) or 'nothing'}."
    if scene.floor is not None:
        ladder = "open" if scene.ladder_open else "closed"
        yield f"Floor {scene.floor}, {FLOORS[scene.floor]}. The way down is {ladder}."
    if scene.asleep or scene.resting:
        yield f"You are {'asleep' if scene.asleep else 'resting'}: until that ends, every action is a noop."


def number(value: float) -> str:
    """A health as text: whole where it is whole (it is an integer in Classic, a float in full)."""
    return str(int(value)) if value == int(value) else f"{value:.1f}"


def draw_map(scene: Scene) -> str:
    """What is in view, one letter a tile, with the legend of what occurs; you are @, creatures are digits."""
    rows = [[" " if block is None else _LETTERS.get(block, "?") for block in row] for row in scene.blocks]
    middle_row, middle_column = len(rows) // 2, len(rows[0]) // 2
    legend = {_LETTERS.get(block, "?"): words(block) for row in scene.blocks for block in row if block is not None}
    for name, (down, right) in scene.items:
        letter = {"torch": "*", "ladder_down": ">", "ladder_up": "<"}.get(name, "?")
        rows[middle_row + down][middle_column + right] = letter
        legend[letter] = words(_item(scene, name))
    for place, mob in enumerate(scene.mobs[:9], 1):
        rows[middle_row + mob.offset[0]][middle_column + mob.offset[1]] = str(place)
        legend[str(place)] = mob.name
    rows[middle_row][middle_column] = "@"
    named = ", ".join(f"{letter} {name}" for letter, name in legend.items())
    return "\n".join(["Map:", *("".join(row) for row in rows), f"(@ you, {named})"])
