"""A scene as JSON."""

from __future__ import annotations

import json
from typing import Any

from llenvs_craftax.scene import Scene


def as_json(scene: Scene, *, show_position: bool = False, mob_health: bool = False) -> str:
    """The scene as one JSON object. `dx` counts tiles to the right, `dy` tiles down; the player is at 0, 0.

    The keys: facing; view, rows of block names from top left, null where it is dark, with the player's tile in the
    middle; items and mobs, each with name, dx and dy; vitals as [value, most]; inventory; daylight from 0 to 1;
    sleeping. Only in the full game: attributes, equipment, floor, ladder_open, resting.
    """
    mobs = []
    for mob in scene.mobs:
        shown: dict[str, Any] = {"name": mob.name, "dx": mob.offset[1], "dy": mob.offset[0]}
        if mob_health:
            shown["health"] = mob.health
        mobs.append(shown)
    data: dict[str, Any] = {"facing": scene.facing, "view": scene.blocks, "mobs": mobs}
    if scene.floor is not None:
        data["items"] = [{"name": name, "dx": dx, "dy": dy} for name, (dy, dx) in scene.items]
    data["vitals"] = {name: [int(v) if v == int(v) else v, most] for name, (v, most) in scene.vitals.items()}
    data["inventory"] = scene.inventory
    data["daylight"] = round(scene.daylight, 3)
    data["sleeping"] = scene.asleep
    if scene.floor is not None:
        data["resting"] = scene.resting
        data["attributes"] = scene.attributes
        data["equipment"] = scene.equipment
        data["floor"] = scene.floor
        data["ladder_open"] = scene.ladder_open
    if show_position:
        data["position"] = scene.position
    return json.dumps(data, separators=(",", ":"))
