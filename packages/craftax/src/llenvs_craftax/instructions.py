"""The rules in words: what a player of the game would have read."""

from __future__ import annotations

from llenvs_craftax.upstream import Upstream
from llenvs_craftax.variants import ObservationMode

_RULES = """\
You play {name}, a game of survival and crafting on a grid. Each new achievement scores; so does each point of \
health won (+0.1) or lost (-0.1). The game ends when your health reaches 0.

left, right, up and down turn you, and move you if the tile there is free. do acts on the tile that you face: it \
collects, attacks, eats and drinks. Collecting a sapling takes some tries on grass. Food, drink and energy fall \
with time; sleep restores energy, and attracts danger. Crafting needs a crafting table nearby (tools of iron also \
a furnace), and the materials: a crafting table and pickaxes and swords of wood need wood, those of stone wood \
and stone, those of iron wood, stone, coal and iron."""

_CLASSIC_RULES = """\
Stone and coal need a wooden pickaxe, iron a stone one, a diamond an iron one. Lava kills."""

_FULL_RULES = """\
Stone and coal need a wooden pickaxe, iron a stone one, diamonds an iron one, sapphires and rubies a diamond one. \
descend and ascend work on ladders; a ladder down opens once enough creatures of the floor are defeated. rest \
heals. Arrows need a bow, spells need a book to be read and mana, enchantments a table and a gem. A new floor \
gives experience, which level_up_dexterity, level_up_strength and level_up_intelligence spend. What a potion \
does is different in each world. Torches give light."""

_SHOWN: dict[ObservationMode, str] = {
    "text": "You are told what is in view; 2 left, 1 up means two tiles to the left and one up.",
    "symbolic": "You are shown JSON: view holds rows of tiles with yours in the middle (null: too dark to see), "
    "dx counts tiles to the right, dy tiles down.",
    "pixels": "You are shown an image of what is around you, with your vitals and your inventory below.",
}


def instructions(upstream: Upstream, mode: ObservationMode, *, max_actions: int, action_repeat: int) -> str:
    """The task text."""
    classic = upstream.variant == "classic"
    name = "Craftax Classic" if classic else "Craftax"
    if max_actions == 1:
        answer = "Answer with the name of one action; the last line of your answer counts."
    else:
        answer = (
            f"Answer with up to {max_actions} actions, as in: left x2, do. The last line of your answer counts."
        )
    if action_repeat > 1:
        answer += f" Each action is taken {action_repeat} times."
    return "\n\n".join(
        [
            _RULES.format(name=name),
            _CLASSIC_RULES if classic else _FULL_RULES,
            f"Actions: {', '.join(upstream.actions)}.",
            f"Achievements: {', '.join(upstream.achievements)}.",
            f"{_SHOWN[mode]} {answer}",
        ]
    )
