"""The parts that need no upstream: the planner's form, goals, expressions, rewording, snapshots."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from llenvs_alfworld.expression import ForeignExpression, compiled
from llenvs_alfworld.goal import read_goal
from llenvs_alfworld.rewording import reworded
from llenvs_alfworld.sas import FALSE, TRUE, Effect, SasTask
from llenvs_alfworld.snapshot import BadSnapshot, Position, pack_commands, pack_values, unpack

SAS = """begin_version
3
end_version
begin_metric
0
end_metric
3
begin_variable
var0
-1
2
Atom ison(lamp)
NegatedAtom ison(lamp)
end_variable
begin_variable
var1
-1
2
Atom opened(box)
NegatedAtom opened(box)
end_variable
begin_variable
var2
0
2
Atom new-axiom@0()
NegatedAtom new-axiom@0()
end_variable
0
begin_state
1
0
1
end_state
begin_goal
1
2 0
end_goal
2
begin_operator
toggle lamp
1
1 0
2
1 0 0 0 -1 1
1 0 1 0 -1 0
1
end_operator
begin_operator
close box
0
1
0 1 0 1
1
end_operator
1
begin_rule
1
0 0
2 1 0
end_rule
"""


def test_a_task_in_the_planners_form() -> None:
    task = SasTask(SAS)
    assert task.atoms == ("ison(lamp)", "opened(box)", "new-axiom@0()")
    assert (task.initial, task.derived) == ((FALSE, TRUE, FALSE), frozenset({2}))
    assert task.effects(0) == (Effect(0, FALSE, ((0, TRUE),)), Effect(0, TRUE, ((0, FALSE),)))
    assert task.effects(1) == (Effect(1, FALSE),)
    assert task.can_begin_anywhere
    assert task.begun_at([0, 1]).decode() == SAS.replace("begin_state\n1\n0\n1\n", "begin_state\n0\n1\n1\n")
    assert task.begun_at([]).decode() == SAS
    assert task.size == len(SAS) - len("1\n0\n1\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1 0 0 0 -1 1", "1 2 0 0 -1 1"),  # an effect that depends on a derived variable
        ("2\nAtom opened(box)\nNegatedAtom opened(box)", "3\nAtom at(box)\nAtom in(box)\n<none of those>"),
    ],
)
def test_a_task_whose_values_are_no_state(old: str, new: str) -> None:
    assert old in SAS
    assert not SasTask(SAS.replace(old, new)).can_begin_anywhere


def test_a_text_that_is_no_task() -> None:
    with pytest.raises(ValueError, match="no initial state"):
        SasTask("nothing")


CLEAN = """(define (problem p) ; a comment (
 (:goal (and (exists (?r - receptacle) (exists (?o - object)
   (and (cleanable ?o) (objectType ?o SoapType) (receptacleType ?r BinType)
     (isClean ?o) (inReceptacle ?o ?r)))))))"""
TWO = """(define (problem p) (:goal (and (exists (?r - receptacle) (exists (?o1 - object)
   (and (objectType ?o1 SoapType) (receptacleType ?r BinType) (inReceptacle ?o1 ?r)
     (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 SoapType) (inReceptacle ?o2 ?r)))))))))"""
LOOK = """(define (problem p) (:goal (and
   (exists (?t - object ?a - agent ?l - location) (and (isToggled ?t) (objectType ?t LampType) (atLocation ?a ?l)))
   (exists (?o - object ?a - agent) (and (objectType ?o SoapType) (holds ?a ?o))))))"""
CONSTANT = {
    "cleanable": {("soap1",), ("soap2",)},
    "objecttype": {("soap1", "soaptype"), ("soap2", "soaptype"), ("lamp", "lamptype")},
    "receptacletype": {("bin1", "bintype"), ("bin2", "bintype")},
}
ATOMS = [
    "isclean(soap1)", "isclean(soap2)", "inreceptacle(soap1, bin1)", "inreceptacle(soap2, bin1)",
    "inreceptacle(soap2, bin2)", "istoggled(lamp)", "atlocation(me, here)", "holds(me, soap1)",
]  # fmt: skip
INDEX = {atom: number for number, atom in enumerate(ATOMS)}
OBJECTS = {
    "agent": ["me"],
    "location": ["here"],
    "object": ["soap1", "soap2", "lamp", "bin1", "bin2", "me", "here"],
}


@pytest.mark.parametrize(
    ("problem", "true", "share"),
    [
        (CLEAN, [], 0.0),
        (CLEAN, ["isclean(soap2)"], 0.5),
        (CLEAN, ["isclean(soap1)", "inreceptacle(soap2, bin1)"], 0.5),  # two soaps: not the same binding
        (CLEAN, ["isclean(soap2)", "inreceptacle(soap2, bin2)"], 1.0),
        (TWO, ["inreceptacle(soap1, bin1)", "inreceptacle(soap2, bin2)"], 0.5),  # two bins
        (TWO, ["inreceptacle(soap1, bin1)", "inreceptacle(soap2, bin1)"], 1.0),
        (LOOK, ["istoggled(lamp)"], 0.0),  # lit, but I am not there: not half of a condition
        (LOOK, ["istoggled(lamp)", "atlocation(me, here)"], 0.5),
        (LOOK, ["holds(me, soap1)"], 0.5),
        (LOOK, ["istoggled(lamp)", "atlocation(me, here)", "holds(me, soap1)"], 1.0),
    ],
)
def test_goal_conditions(problem: str, true: list[str], share: float) -> None:
    goal = read_goal(problem, CONSTANT, INDEX, OBJECTS)
    assert goal is not None
    assert goal.total == 2
    assert goal.share(lambda variable: ATOMS[variable] in true) == share


@pytest.mark.parametrize(
    "goal",
    [
        "(or (isClean soap1) (isClean soap2))",
        "(and (forall (?o - object) (isClean ?o)))",
        "(and (cleanable soap1))",
    ],
)
def test_goals_of_another_form(goal: str) -> None:
    assert read_goal(f"(define (problem p) (:goal {goal}))", CONSTANT, INDEX, OBJECTS) is None


def test_expressions() -> None:
    variables = {
        "o": SimpleNamespace(name="mug 1", indefinite="a", id="mug_1"),
        "r": SimpleNamespace(name=None, id="r"),
    }
    assert compiled("o.indefinite + ' ' + o.name")(variables) == "a mug 1"
    assert compiled("r.name or r.id")(variables) == "r"
    assert compiled("o")(variables) is variables["o"]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "o.__class__",
        "o.name.upper()",
        "[o for o in 'x']",
        "o.name * 10 ** 9",
        "o[0]",
        "1",
        "o.name; 1",
    ],
)
def test_other_expressions_are_refused(text: str) -> None:
    with pytest.raises(ForeignExpression):
        compiled(text)


def test_rewording() -> None:
    new = ["move mug 1 to desk 1", "go to desk 1", "look"]
    old = ["put mug 1 in/on desk 1", "go to desk 1", "look"]
    for said in (
        "put mug 1 in/on desk 1",
        "PUT mug 1 on desk 1.",
        "place mug 1 into desk 1",
        "move  mug 1 to desk 1",
    ):
        assert reworded(said, new) == new[0]
        assert reworded(said, old) == old[0]
    assert reworded("Look .", new) == "look"
    assert reworded("put mug 2 on desk 1", new) is None
    assert reworded("look", ["Look", "LOOK"]) is None


def test_snapshots() -> None:
    game = bytes(range(32))
    position = Position({5: TRUE, 2: FALSE, 300: FALSE}, frozenset({2, 5}))
    assert unpack(pack_values(position, game), game, 301, frozenset()) == position
    assert pack_values(position, game)[13:] == b"\x02\0\x05\0\x2c\x01" + b"\1\3\0"
    assert unpack(pack_commands(("look", "go to bed 1"), game), game, 301, frozenset()) == ("look", "go to bed 1")
    assert unpack(pack_commands((), game), game, 301, frozenset()) == ()


GAME = bytes(range(32))
GOOD = pack_values(Position({5: TRUE, 2: FALSE, 300: FALSE}, frozenset({2, 5})), GAME)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:12],
        b"\3" + GOOD[1:],  # of another kind
        b"\2" + GOOD[1:],  # not so many commands
        GOOD[:-1],
        GOOD + b"\0",
        GOOD[:13] + GOOD[15:17] + GOOD[13:15] + GOOD[17:],  # variables in another order
        GOOD[:13] + b"\xff" * 6 + GOOD[19:],  # variables that the game does not have
        GOOD[:13] + b"\x03\0" + GOOD[15:],  # a derived one
        GOOD[:-1] + b"\7",  # a flag that means nothing
        GOOD[:9] + b"\xff\xff\xff\x7f" + GOOD[13:],
    ],
)
def test_damaged_snapshots(data: bytes) -> None:
    with pytest.raises(BadSnapshot, match=r"damaged|no snapshot"):
        unpack(data, GAME, 301, frozenset({3}))


def test_a_snapshot_of_another_game() -> None:
    with pytest.raises(BadSnapshot, match="made with another game file"):
        unpack(GOOD, b"x" * 32, 301, frozenset())
