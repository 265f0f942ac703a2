"""What the player perceives in a state: what is in view, vitals, inventory. Names and numbers, no wording yet.

The same as the upstream shows in its symbolic observation. Offsets are (down, right) in tiles from the player, so
(-2, 0) is two up; the upstream's text renderer calls these axes by each other's names in places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llenvs_craftax.upstream import Upstream

Offset = tuple[int, int]
DIRECTIONS: dict[str, Offset] = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
"""In the order of the upstream's numbers 1 to 4."""
_FACING = ("", *DIRECTIONS)
OUT_OF_BOUNDS = 1
_LIT = 0.05  # what the upstream takes for visible
_KILLS_THAT_OPEN = 8  # MONSTERS_KILLED_TO_CLEAR_LEVEL
FLOORS = (
    "overworld", "dungeon", "gnomish mines", "sewers", "vaults", "troll mines", "fire realm", "ice realm",
    "graveyard",
)  # fmt: skip

_PASSIVE = ("cow", "bat", "snail")
_MELEE = ("zombie", "gnome warrior", "orc soldier", "lizard", "knight", "troll", "pigman", "frost troll")
_RANGED = (
    "skeleton", "gnome archer", "orc mage", "kobold", "archer", "deep thing", "fire elemental", "ice elemental",
)  # fmt: skip
_PROJECTILE = ("arrow", "dagger", "fireball", "iceball", "arrow", "slimeball", "fireball", "iceball")
_CLASSIC_MOBS = (("zombies", "zombie"), ("cows", "cow"), ("skeletons", "skeleton"), ("arrows", "arrow"))
_FULL_MOBS = (
    ("melee_mobs", _MELEE, ""),
    ("passive_mobs", _PASSIVE, ""),
    ("ranged_mobs", _RANGED, ""),
    ("mob_projectiles", _PROJECTILE, ""),
    ("player_projectiles", _PROJECTILE, "own "),
)

_CLASSIC_INVENTORY = (
    "wood", "stone", "coal", "iron", "diamond", "sapling", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe",
    "wood_sword", "stone_sword", "iron_sword",
)  # fmt: skip
_FULL_INVENTORY = (
    "wood", "stone", "coal", "iron", "diamond", "sapphire", "ruby", "sapling", "torches", "arrows", "books",
)  # fmt: skip
_MATERIALS = {1: "wood", 2: "stone", 3: "iron", 4: "diamond"}
_ARMOURS = {1: "iron", 2: "diamond"}
_ARMOUR_PARTS = ("helmet", "chestplate", "leggings", "boots")
_ENCHANTMENTS = {1: "fire", 2: "ice"}
_POTIONS = ("red", "green", "blue", "pink", "cyan", "yellow")
_SPELLS = ("fireball", "iceball")


@dataclass(frozen=True, slots=True)
class Mob:
    """A creature or projectile in view."""

    name: str
    offset: Offset
    health: float


@dataclass(frozen=True, slots=True)
class Scene:
    """What the player perceives.

    Attributes:
        blocks: rows of the names of blocks in view, None where it is too dark to see; the player is in the middle.
        items: names and offsets of what lies on blocks in view.
        mobs: creatures and projectiles in view, nearest first.
        position: row and column on the map of the floor.
        facing: "left", "right", "up" or "down".
        vitals: name to value and the most that it can be.
        attributes: experience and the like; empty in Classic.
        inventory: name to number, of what there is.
        equipment: what is worn, wielded or known, in words.
        daylight: from 0 (night) to 1.
        floor: the number of the floor, None in Classic, which has one.
        ladder_open: whether the ladder down can be used; None in Classic.
        asleep, resting: every action is a noop then.
    """

    blocks: tuple[tuple[str | None, ...], ...]
    items: tuple[tuple[str, Offset], ...]
    mobs: tuple[Mob, ...]
    position: tuple[int, int]
    facing: str
    vitals: dict[str, tuple[float, int]]
    attributes: dict[str, int]
    inventory: dict[str, int]
    equipment: tuple[str, ...]
    daylight: float
    floor: int | None = None
    ladder_open: bool | None = None
    asleep: bool = False
    resting: bool = False

    def block(self, offset: Offset) -> str | None:
        """The name of the block at `offset`, which must be in view."""
        middle_row, middle_column = len(self.blocks) // 2, len(self.blocks[0]) // 2
        return self.blocks[middle_row + offset[0]][middle_column + offset[1]]


def scene(upstream: Upstream, record: Any) -> Scene:
    """The scene of a state (its record, see `Layout.record`)."""
    return _classic(upstream, record) if upstream.variant == "classic" else _full(upstream, record)


def _classic(upstream: Upstream, record: Any) -> Scene:
    position = _pair(record["player_position"])
    rows = _window(record["map"], position, upstream.view, OUT_OF_BOUNDS).tolist()
    names = upstream.blocks
    blocks = tuple(tuple([names[block] for block in row]) for row in rows)
    mobs = [
        Mob(name, offset, health)
        for field, name in _CLASSIC_MOBS
        for offset, health, _ in _mobs(record, field, None, position, upstream.view)
    ]
    vitals = {name: (float(record[f"player_{name}"]), 9) for name in ("health", "food", "drink", "energy")}
    counts = ((name, int(record[f"inventory.{name}"])) for name in _CLASSIC_INVENTORY)
    return Scene(
        blocks=blocks,
        items=(),
        mobs=tuple(sorted(mobs, key=_distance)),
        position=position,
        facing=_FACING[int(record["player_direction"])],
        vitals=vitals,
        attributes={},
        inventory={name: count for name, count in counts if count},
        equipment=(),
        daylight=float(record["light_level"]),
        asleep=bool(record["is_sleeping"]),
    )


def _full(upstream: Upstream, record: Any) -> Scene:
    position, level, view = _pair(record["player_position"]), int(record["player_level"]), upstream.view
    lit = _window(record["light_map"][level], position, view, 0.0) > _LIT
    is_lit = lit.tolist()
    rows = _window(record["map"][level], position, view, OUT_OF_BOUNDS).tolist()
    names = upstream.blocks
    vulnerable = _boss_is_vulnerable(record, level)
    if vulnerable:
        names = tuple("necromancer_vulnerable" if name == "necromancer" else name for name in names)
    blocks = tuple(
        tuple([names[block] if seen else None for block, seen in zip(row, see, strict=True)])
        for row, see in zip(rows, is_lit, strict=True)
    )
    lying = _window(record["item_map"][level], position, view, 0) * lit
    middle = view[0] // 2, view[1] // 2
    items = [
        (upstream.items[lying[row, column]], (int(row) - middle[0], int(column) - middle[1]))
        for row, column in zip(*lying.nonzero(), strict=True)
    ]
    mobs = [
        Mob(mine + _named(kinds, kind), offset, health)
        for field, kinds, mine in _FULL_MOBS
        for offset, health, kind in _mobs(record, field, level, position, view)
        if is_lit[middle[0] + offset[0]][middle[1] + offset[1]]
    ]
    dexterity, strength = int(record["player_dexterity"]), int(record["player_strength"])
    intelligence = int(record["player_intelligence"])
    most = {"health": 8 + strength, "mana": 6 + 3 * intelligence}
    vitals = {
        name: (float(record[f"player_{name}"]), most.get(name, 7 + 2 * dexterity))
        for name in ("health", "food", "drink", "energy", "mana")
    }
    return Scene(
        blocks=blocks,
        items=tuple(sorted(items, key=lambda item: _length(item[1]))),
        mobs=tuple(sorted(mobs, key=_distance)),
        position=position,
        facing=_FACING[int(record["player_direction"])],
        vitals=vitals,
        attributes={
            "experience": int(record["player_xp"]),
            "dexterity": dexterity,
            "strength": strength,
            "intelligence": intelligence,
        },
        inventory=dict(_full_inventory(record)),
        equipment=tuple(_equipment(record)),
        daylight=float(record["light_level"]),
        floor=level,
        ladder_open=int(record["monsters_killed"][level]) >= _KILLS_THAT_OPEN,
        asleep=bool(record["is_sleeping"]),
        resting=bool(record["is_resting"]),
    )


def _full_inventory(record: Any) -> Iterator[tuple[str, int]]:
    for name in _FULL_INVENTORY:
        count = int(record[f"inventory.{name}"])
        if count:
            yield name, count
    for name, count in zip(_POTIONS, record["inventory.potions"].tolist(), strict=True):
        if count:
            yield f"{name}_potion", count


def _equipment(record: Any) -> Iterator[str]:
    pickaxe, sword = int(record["inventory.pickaxe"]), int(record["inventory.sword"])
    if pickaxe:
        yield f"{_MATERIALS.get(pickaxe, '?')} pickaxe"
    if sword:
        yield f"{_MATERIALS.get(sword, '?')} sword{_enchanted(record['sword_enchantment'])}"
    if record["inventory.bow"]:
        yield f"bow{_enchanted(record['bow_enchantment'])}"
    armour = record["inventory.armour"].tolist(), record["armour_enchantments"].tolist()
    for part, level, enchantment in zip(_ARMOUR_PARTS, *armour, strict=True):
        if level:
            yield f"{_ARMOURS.get(level, '?')} {part}{_enchanted(enchantment)}"
    for spell, learned in zip(_SPELLS, record["learned_spells"].tolist(), strict=True):
        if learned:
            yield f"the spell {spell}"


def _enchanted(enchantment: Any) -> str:
    kind = _ENCHANTMENTS.get(int(enchantment))
    return f" with {kind} enchantment" if kind else ""


def _boss_is_vulnerable(record: Any, level: int) -> bool:
    fighting = record["melee_mobs.mask"][level].any() or record["ranged_mobs.mask"][level].any()
    return not fighting and int(record["boss_timesteps_to_spawn_this_round"]) <= 0


def _window(
    grid: np.ndarray[Any, Any], position: tuple[int, int], view: tuple[int, int], outside: float
) -> np.ndarray[Any, Any]:
    """The part of `grid` around `position`, with `outside` beyond its edges."""
    (height, width), (rows, columns) = grid.shape, view
    top, left = position[0] - rows // 2, position[1] - columns // 2
    if top >= 0 and left >= 0 and top + rows <= height and left + columns <= width:
        return grid[top : top + rows, left : left + columns]
    window = np.full(view, outside, dtype=grid.dtype)
    above, before = max(-top, 0), max(-left, 0)  # rows and columns beyond the edge
    part = grid[top + above : top + rows, left + before : left + columns]
    window[above : above + part.shape[0], before : before + part.shape[1]] = part
    return window


def _mobs(
    record: Any, field: str, level: int | None, position: tuple[int, int], view: tuple[int, int]
) -> Iterator[tuple[Offset, float, int]]:
    """Offset, health and kind of those in the window."""
    mask = record[f"{field}.mask"] if level is None else record[f"{field}.mask"][level]
    if not mask.any():
        return
    half_rows, half_columns = view[0] // 2, view[1] // 2

    def of(what: str) -> Any:
        values = record[f"{field}.{what}"]
        return values if level is None else values[level]

    kinds = of("type_id") if level is not None else mask
    for there, (row, column), health, kind in zip(
        mask.tolist(), of("position").tolist(), of("health").tolist(), kinds.tolist(), strict=True
    ):
        offset = row - position[0], column - position[1]
        if there and abs(offset[0]) <= half_rows and abs(offset[1]) <= half_columns:
            yield offset, float(health), int(kind)


def _named(kinds: Sequence[str], kind: int) -> str:
    return kinds[kind] if 0 <= kind < len(kinds) else "creature"


def _pair(values: Any) -> tuple[int, int]:
    first, second = values.tolist()
    return first, second


def _distance(mob: Mob) -> int:
    return _length(mob.offset)


def _length(offset: Offset) -> int:
    return abs(offset[0]) + abs(offset[1])
