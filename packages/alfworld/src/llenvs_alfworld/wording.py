"""A game's texts: the rules of its grammar, applied to the facts of a state.

The rules are parsed, and matched against the facts, by TextWorld. What they derive is put together here: TextWorld
parses each rule anew for each command that is possible, copies all it knows for each symbol, and evaluates text of
the game file as Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from textworld.envs.pddl import textgen
from textworld.logic import Rule

from llenvs_alfworld.expression import compiled


class Scene(NamedTuple):
    """What the symbols of a rule speak of: entities by the rule's names, and the same as TextWorld's mapping."""

    variables: Mapping[str, Any]
    mapping: Mapping[Any, Any]


@lru_cache(maxsize=4096)
def symbols_of(text: str) -> Sequence[Any]:
    """The symbols of a rule's right-hand side. They are shared and must not be changed."""
    return tuple(textgen._parse_and_convert(text, rule_name="symbols"))


@lru_cache(maxsize=4096)
def query(text: str) -> Rule:
    """A condition as TextWorld's rule. It is shared and must not be changed."""
    return Rule.parse_conjunctive_query(text)


class Wording:
    """The texts of one game.

    Args:
        grammar: TextWorld's parsed grammar.
        facts: TextWorld's state, which knows the facts.
        entities: TextWorld's entities, with their names, by their ids.
    """

    def __init__(self, grammar: textgen.ContextSensitiveGrammar, facts: Any, entities: Mapping[str, Any]) -> None:
        self._rules, self._facts, self._entities = grammar._rules, facts, entities

    def derived(self, text: str, mapping: Mapping[Any, Any]) -> str:
        """What `text` becomes where placeholders stand for the variables of `mapping`, in the facts as they are.

        Raises:
            LookupError: a rule that does not exist, or none that applies.
            ForeignExpression: see there.
        """
        variables = {placeholder.name: self._entities[v.name] for placeholder, v in mapping.items()}
        return "".join(self._all(symbols_of(text), Scene(variables, mapping)))

    def _all(self, symbols: Sequence[Any], scene: Scene) -> Iterator[str]:
        for symbol in symbols:
            match symbol:
                case textgen.TerminalSymbol():
                    yield str(symbol.symbol)
                case textgen.EvalSymbol():
                    yield str(compiled(symbol.expression)(scene.variables))
                case textgen.NonterminalSymbol():
                    yield from self._all(self._chosen(str(symbol.symbol), scene), scene)
                case textgen.ListSymbol():
                    yield from self._listed(self._items(symbol.symbol, scene), scene)
                case textgen.ConditionalSymbol():
                    yield from self._items(symbol, scene)
                case _:
                    raise LookupError(f"the game's text rules hold a symbol of an unknown kind: {symbol!r}")

    def _chosen(self, name: str, scene: Scene) -> Sequence[Any]:
        """The right-hand side of the first rule called `name` whose condition holds."""
        rules = self._rules.get(name)
        if not rules:
            raise LookupError(f"the game has no text rule {name!r}")
        for rule in rules:
            if not rule.condition or next(self._matches(rule.condition, scene), None) is not None:
                right: Sequence[Any] = rule.rhs
                return right
        raise LookupError(f"no text rule {name!r} of the game applies")

    def _items(self, symbol: Any, scene: Scene) -> list[str]:
        """One text for each way in which the condition of `symbol` can be met."""
        if not isinstance(symbol, textgen.ConditionalSymbol):
            return ["".join(self._all([symbol], scene))]
        scenes = list(self._matches(symbol.given, scene)) if symbol.given else [scene]
        return ["".join(self._all([symbol.expression], each)) for each in scenes]

    def _listed(self, items: list[str], scene: Scene) -> Iterator[str]:
        """The items as in a sentence; how to say none and what stands between them are rules, too."""
        if not items:
            yield from self._all(self._chosen("list_empty", scene), scene)
        for number, item in enumerate(items):
            if number:
                name = "list_last_separator" if number == len(items) - 1 else "list_separator"
                yield from self._all(self._chosen(name, scene), scene)
            yield item

    def _matches(self, condition: str, scene: Scene) -> Iterator[Scene]:
        for found in self._facts.all_assignments(query(condition), scene.mapping):
            named = {placeholder.name: self._entities[v.name] for placeholder, v in found.items()}
            yield Scene({**scene.variables, **named}, {**scene.mapping, **found})
