"""One game, loaded: its texts, its commands, and where an episode stands in it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from alfworld.agents.utils.misc import Demangler
from textworld.envs.pddl.logic import GameLogic, PddlState
from textworld.envs.pddl.textgen import ConditionalSymbol, EvalSymbol, ListSymbol, TerminalSymbol
from textworld.generator.game import EntityInfo
from textworld.logic import Placeholder, Proposition, Variable

from llenvs_alfworld.goal import read_goal
from llenvs_alfworld.planner import Planner
from llenvs_alfworld.sas import FALSE, TRUE, SasTask
from llenvs_alfworld.snapshot import BadSnapshot, Position, pack_commands, pack_values, unpack
from llenvs_alfworld.wording import Wording, query, symbols_of

NOTHING_HAPPENS = "Nothing happens."
"""What the upstream answers to a command that is not admissible."""


class Game:
    """A game and the position of the episode that is played in it.

    Args:
        path: of the game file (``game.tw-pddl``).
        planner: shared by all games; each takes it when it needs it.
        by_commands: let snapshots be the commands taken, not the planner's values. Games whose values do not make
            a state do so in any case.
    """

    def __init__(self, path: Path, planner: Planner, *, by_commands: bool = False) -> None:
        content = path.read_bytes()
        data = json.loads(content)
        self.sha256 = hashlib.sha256(content).digest()
        logic = GameLogic(data["pddl_domain"], data["grammar"])
        self._planner = planner
        with planner.lent() as library:
            self._facts = PddlState(library, data["pddl_problem"], logic)
        self._task, self._planning = SasTask(self._facts.sas), SasTask(self._facts.sas_replan)
        self._by_commands = by_commands or not self._task.can_begin_anywhere
        self._types: dict[str, str] = self._facts.name2type
        self._parameters = {
            name: [(p.name.strip("?"), p.type_name) for p in action.parameters]
            for name, action in self._facts._actions.items()
        }
        self._actions = logic.actions
        self._wording = Wording(logic.grammar, self._facts, _entities(self._facts))
        self._fluents = {atom.partition("(")[0] for atom in self._task.atoms}
        self._goal = read_goal(data["pddl_problem"], self._constant_atoms(), self._task.index, self._objects())
        # the translated task as the upstream keeps it is large, and no longer needed
        self._facts.task = self._facts._actions = None
        self._facts.sas = self._facts.sas_replan = ""
        self._commands: dict[str, str] = {}
        self._position = Position()
        self._taken: tuple[str, ...] = ()
        self._possible: dict[str, tuple[int, str]] | None = None
        self.goal_text = self._wording.derived("#task#", {}) if logic.grammar._rules.get("task") else ""

    @property
    def size(self) -> int:
        """About how many bytes of memory the game takes: measured, it grows with the planner's text of it."""
        return 6 * (self._task.size + self._planning.size)

    # -- playing ------------------------------------------------------------------------------------------

    def start(self) -> str:
        """Go to the beginning. Returns the first text."""
        self._go_to(Position(), ())
        return self._wording.derived("#intro#", {})

    def act(self, command: str) -> str:
        """Take a command, which must be written as `admissible` has it. Returns the game's answer."""
        found = self.possible().get(command)
        if found is None:
            return NOTHING_HAPPENS
        operator, name = found
        self._hold_planner()
        self._planner.apply(operator)
        told, differing = dict(self._position.told), set(self._position.differing)
        for effect in self._task.effects(operator):
            told[effect.variable] = effect.value
            self._tell(effect.variable, effect.value)
            # effects happen at once: their conditions are about the position before
            if not self._by_commands and all(self._value(v) == value for v, value in effect.conditions):
                changed = effect.value != self._task.initial[effect.variable]
                (differing.add if changed else differing.discard)(effect.variable)
        if self._by_commands:
            differing = self._differing_in_planner()
            self._taken = (*self._taken, command)
        self._position, self._possible = Position(told, frozenset(differing)), None
        return self._wording.derived(self._actions[name.split()[0]].feedback_rule, self._mapping(name))

    def possible(self) -> dict[str, tuple[int, str]]:
        """The planner's operators, number and name, by the commands that take them; the first one of each."""
        if self._possible is None:
            self._hold_planner()
            self._possible = {}
            for operator, name in self._planner.applicable():
                self._possible.setdefault(self._command(name), (operator, name))
        return self._possible

    def admissible(self) -> list[str]:
        """The commands that do something now, sorted."""
        return sorted(self.possible())

    def won(self) -> bool:
        """Whether the goal holds now."""
        self._hold_planner()
        return self._planner.reached_goal()

    def goal_conditions(self) -> float:
        """The share of the goal's conditions that hold now; a goal of unknown form is one condition."""
        if self._goal is None:
            return float(self.won())
        return self._goal.share(lambda variable: self._value(variable) == TRUE)

    def plan(self) -> list[str] | None:
        """Commands that lead from here to the goal, by the planner; None when it finds none."""
        differing = [
            number
            for number, atom in enumerate(self._planning.atoms)
            if number not in self._planning.derived
            and self._value(self._task.index[atom]) != self._planning.initial[number]
        ]
        names = self._planner.plan(self._planning.begun_at(differing))
        return None if names is None else [self._command(name) for name in names]

    # -- positions ----------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The position as bytes."""
        if self._by_commands:
            return pack_commands(self._taken, self.sha256)
        return pack_values(self._position, self.sha256)

    def restore(self, snapshot: bytes) -> None:
        """Go where `save` gave `snapshot`, in this process or another.

        Raises:
            BadSnapshot: it is none of this game.
        """
        found = unpack(snapshot, self.sha256, len(self._task.atoms), self._task.derived)
        if isinstance(found, Position) == self._by_commands:
            raise BadSnapshot("this state was kept in the other way; see the option `state`")
        if isinstance(found, Position):
            self._go_to(found, ())
        elif found != self._taken:
            self._go_to(Position(), ())
            for command in found:
                if command not in self.possible():
                    raise BadSnapshot(f"this snapshot is damaged: {command!r} is not possible there")
                self.act(command)

    def _go_to(self, position: Position, taken: tuple[str, ...]) -> None:
        before, after = self._position.told, position.told
        for variable in before.keys() | after.keys():
            if before.get(variable) != after.get(variable):
                self._tell(variable, after.get(variable))
        if position != self._position:
            self._possible = None
        if position.differing != self._position.differing and self._planner.holder is self:
            self._planner.holder = None
        self._position, self._taken = position, taken

    def _hold_planner(self) -> None:
        """Make sure that the planner stands where the episode does."""
        if self._planner.holder is not self:
            self._planner.begin(self._task.begun_at(self._position.differing), self)

    def _value(self, variable: int) -> int:
        initial = self._task.initial[variable]
        return 1 - initial if variable in self._position.differing else initial

    def _differing_in_planner(self) -> set[int]:
        true = self._planner.true_atoms()
        return {
            number
            for number, atom in enumerate(self._task.atoms)
            if number not in self._task.derived and (atom in true) != (self._task.initial[number] == TRUE)
        }

    def _tell(self, variable: int, value: int | None) -> None:
        """Let TextWorld's facts be that `variable` was said to get `value`, or for None was never spoken of."""
        name, _, arguments = self._task.atoms[variable].partition("(")
        things = [Variable(a, self._types[a]) for a in arguments.rstrip(")").split(", ") if a]
        shown = self._task.initial[variable] if value is None else value
        for fact, holds in (
            (Proposition(name, things), shown == TRUE),
            (Proposition(f"not_{name}", things), value == FALSE),
        ):
            facts = self._facts._facts[fact.signature]
            (facts.add if holds else facts.discard)(fact)

    # -- names --------------------------------------------------------------------------------------------

    def _mapping(self, operator: str) -> dict[Any, Any]:
        """What the parameters of an operator's action stand for, as TextWorld's rules take it."""
        action, *arguments = operator.split()
        return {
            Placeholder(name, kind): Variable(argument, kind)
            for (name, kind), argument in zip(self._parameters[action], arguments, strict=False)
        }

    def _command(self, operator: str) -> str:
        known = self._commands.get(operator)
        if known is not None:
            return known
        template = self._actions[operator.split()[0]].template
        command = self._wording.derived(template, self._mapping(operator))
        if all(self._is_steady(symbol) for symbol in symbols_of(template)):
            self._commands[operator] = command
        return command

    def _is_steady(self, symbol: Any) -> bool:
        """Whether `symbol` becomes the same text in every state."""
        match symbol:
            case TerminalSymbol() | EvalSymbol():
                return True
            case ListSymbol():  # how lists are put together does not depend on the state in any game
                return self._is_steady(symbol.symbol)
            case ConditionalSymbol():
                asked = query(symbol.given).preconditions if symbol.given else ()
                changing = any(predicate.name in self._fluents for predicate in asked)
                return not changing and self._is_steady(symbol.expression)
        return False

    def _constant_atoms(self) -> dict[str, set[tuple[str, ...]]]:
        atoms: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        for fact in self._facts.facts:
            if fact.name not in self._fluents:
                atoms[fact.name].add(fact.names)
        return dict(atoms)

    def _objects(self) -> dict[str, list[str]]:
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for name, kind in self._types.items():
            for each in {kind, "object"}:
                by_type[each].append(name)
        return dict(by_type)


def _entities(facts: PddlState) -> dict[str, EntityInfo]:
    """The things of a game with the names that ALFWorld gives them, such as ``mug 1``."""
    entities = {thing.name: EntityInfo(thing.name, thing.type) for fact in facts.facts for thing in fact.arguments}
    names = Demangler(game_infos=entities, shuffle=False)
    for entity in entities.values():
        entity.name, entity.definite, entity.indefinite = names.demangle_alfred_name(entity.id), "the", "a"
    return entities
