"""What the upstream has, known without importing it (its import takes seconds)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llenvs.core.errors import UnknownEnvironment

UPSTREAM_RELEASE = "0.1.0"
"""The release of gem-llm that the tables of this package describe."""


class Kind(StrEnum):
    """How an environment works."""

    GAME = "game"
    MATH = "math"
    QA = "qa"
    LOGIC = "logic"
    CODE = "code"
    REASONING = "rg"


class Needs(StrEnum):
    """What an environment needs besides the packages."""

    NOTHING = "works offline"
    CORPUS = "needs corpus"
    HUB = "needs hub"
    BROKEN = "broken upstream"


@dataclass(frozen=True, slots=True)
class Entry:
    """One id of the upstream's registry.

    Attributes:
        id: as the upstream writes it.
        kind: how it works.
        description: one line.
        needs: what it needs.
        note: what is broken in the upstream, and what this package does about it.
        settings: of a game: the upstream's keyword arguments. Of a data set: where its rows are and how its
            columns are called.
    """

    id: str
    kind: Kind
    description: str
    needs: Needs = Needs.NOTHING
    note: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def category(self) -> str:
        """The part of the id before the colon."""
        return self.id.partition(":")[0]


_GAMES: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "GuessTheNumber-v0": (
        "guess a number from hints that it is higher or lower",
        {
            "easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
            "hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
            "random": {"min_number": None, "max_number": None, "max_turns": None},
        },
    ),
    "Mastermind-v0": (
        "find a code of digits from black and white pegs",
        {
            "easy": {"code_length": 2, "num_numbers": 6, "max_turns": 10},
            "hard": {"code_length": 4, "num_numbers": 8, "max_turns": 30},
            "random": {"code_length": None, "num_numbers": None, "max_turns": None},
        },
    ),
    "Minesweeper-v0": (
        "reveal all cells that hold no mine",
        {
            "easy": {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25},
            "hard": {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64},
            "random": {"rows": None, "cols": None, "num_mines": None, "max_turns": None},
        },
    ),
    "Wordle-v0": (
        "find a word from marks for its letters",
        {
            "easy": {"word_length": 3, "only_real_words": True, "max_turns": 15},
            "hard": {"word_length": 5, "only_real_words": True, "max_turns": 25},
            "random": {"word_length": None, "only_real_words": True, "max_turns": None},
        },
    ),
    "FifteenPuzzle-v0": (
        "slide tiles into order (the upstream's boards: about half of them cannot be solved)",
        {
            "easy": {"num_rows": 2, "max_turns": 10},
            "hard": {"num_rows": 4, "max_turns": 50},
            "random": {"num_rows": None, "max_turns": None},
        },
    ),
    "Hangman-v0": (
        "find a word letter by letter",
        {
            "easy": {"word_length": 3, "hardcore": False, "max_turns": 10},
            "hard": {"word_length": 7, "hardcore": False, "max_turns": 20},
            "random": {"word_length": None, "hardcore": False, "max_turns": None},
        },
    ),
    "Sudoku-v0": (
        "fill a Sudoku cell by cell",
        {
            "easy": {"clues": 10, "max_turns": 15, "scale": 4},
            "hard": {"clues": 50, "max_turns": 50, "scale": 9},
            "random": {"clues": None, "max_turns": None, "scale": None},
        },
    ),
    "TowerofHanoi-v0": (
        "move a tower disk by disk",
        {
            "easy": {"num_disks": 3, "max_turns": 10},
            "hard": {"num_disks": 5, "max_turns": 35},
            "random": {"num_disks": None, "max_turns": None},
        },
    ),
    "Game2048-v0": (
        "merge tiles until the target tile is reached",
        {
            "easy": {"target_tile": 64, "max_turns": 50},
            "hard": {"target_tile": 512, "max_turns": 50},
            "extreme-hard": {"target_tile": 2048, "max_turns": 100},
            "random": {"target_tile": None, "max_turns": None},
        },
    ),
    "Sokoban-v0": (
        "push all boxes onto targets (making a hard board takes seconds)",
        {
            "easy": {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20},
            "hard": {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50},
            "random": {"num_boxes": None, "max_turns": None},
        },
    ),
    "Crosswords-v0": (
        "fill a small crossword letter by letter",
        {
            "easy": {"hardcore": False, "max_turns": 30, "num_words": 3},
            "hard": {"hardcore": True, "max_turns": 40, "num_words": 3},
            "random": {"hardcore": None, "max_turns": None, "num_words": None},
        },
    ),
    "WordSearch-v0": (
        "find the words in a grid of letters",
        {
            "easy": {"num_words": 5, "max_turns": 20, "hardcore": False},
            "hard": {"num_words": 5, "max_turns": 20, "hardcore": True},
            "random": {"num_words": None, "max_turns": None, "hardcore": None},
        },
    ),
}
_OF_WORDS = ("Wordle-v0", "Hangman-v0", "WordSearch-v0")
_MENDED = {
    "game:FifteenPuzzle-v0-random": "its constructor raises TypeError; made here without it",
    "game:Crosswords-v0-random": "its constructor raises ValueError; made here without it",
}


def _columns(dataset: str, split: str | None, question: str = "problem", answer: str = "answer") -> dict[str, Any]:
    return {"dataset": dataset, "split": split, "question_key": question, "answer_key": answer}


_SEARCH_SETS = {
    "2Wiki": "2wiki",
    "PopQA": "popqa",
    "TriviaQA": "tq",
    "HotpotQA": "hotpotqa",
    "Bamboogle": "bamboogle",
    "NaturalQuestions": "nq",
    "Musique": "musique",
}
_MATH_EVAL = {
    "MATH500": "math",
    "AMC": "amc",
    "OlympiadBench": "olympiad_bench",
    "Minerva": "minerva",
    "AIME24": "aime24",
}
_DATASETS: dict[str, tuple[Kind, str, dict[str, Any]]] = {
    "math:ASDiv2K": (Kind.MATH, "grade-school word problems", _columns("axon-rl/ASDIV-2k", None)),
    "math:GSM8K": (Kind.MATH, "grade-school word problems", _columns("axon-rl/GSM-8k", None)),
    "math:Math12K": (Kind.MATH, "competition mathematics", _columns("axon-rl/MATH-12k", None)),
    "math:Math8K-3to5": (
        Kind.MATH,
        "competition mathematics, levels 3 to 5",
        _columns("axon-rl/MATH-lvl3to5-8k", None),
    ),
    "math:Orz57K": (Kind.MATH, "the Open-Reasoner-Zero training set", _columns("axon-rl/ORZ-57k", None)),
    "math:DeepScaleR40K": (Kind.MATH, "the DeepScaleR training set", _columns("axon-rl/DeepScaleR-40K", None)),
    "math:Geometry3K": (
        Kind.MATH,
        "geometry problems with images",
        {**_columns("axon-rl/geometry3k", "train"), "image_key": "images"},
    ),
    "code:CodeContest": (
        Kind.CODE,
        "programming contests",
        _columns("axon-rl/CodeContest", "train", answer="tests"),
    ),
    "code:Taco8k": (Kind.CODE, "programming contests", _columns("axon-rl/TACO-8k", "train", answer="tests")),
    "code:PrimeIntellect15k": (
        Kind.CODE,
        "programming problems",
        _columns("axon-rl/PrimeIntellect-15k", "train", answer="tests"),
    ),
    **{
        f"logic:RuleTaker-d{depth}": (
            Kind.LOGIC,
            f"whether a statement follows from facts and rules, depth {depth}",
            _columns(f"axon-rl/RuleTaker-d{depth}-70k", "train", "question"),
        )
        for depth in (0, 1, 2, 3, 5)
    },
    "qa:NaturalQuestions": (
        Kind.QA,
        "questions put to a search engine",
        _columns("axon-rl/NaturalQuestions", "train"),
    ),
    "qa:HotpotQA": (Kind.QA, "questions of several hops", _columns("axon-rl/HotpotQA", "train")),
    **{
        f"eval:{name}": (Kind.MATH, f"mathematics: {name}", _columns("axon-rl/math-eval", split))
        for name, split in _MATH_EVAL.items()
    },
    "eval:CodeContest": (
        Kind.CODE,
        "programming contests, test split",
        _columns("axon-rl/CodeContest", "test", answer="tests"),
    ),
    "eval:QaOpen": (
        Kind.QA,
        "Natural Questions, open",
        _columns("google-research-datasets/nq_open", "validation", "question"),
    ),
    **{
        f"eval:{name}": (
            Kind.QA,
            f"questions that want a search: {name}",
            _columns("axon-rl/search-eval", split, "question"),
        )
        for name, split in _SEARCH_SETS.items()
    },
}

_REASONING = """
    complex_arithmetic intermediate_integration polynomial_equations polynomial_multiplication simple_equations
    simple_integration ab base_conversion binary_alternation binary_matrix caesar_cipher count_primes cryptarithm
    game_of_life game_of_life_halting graph_color group_anagrams isomorphic_strings jugs letter_counting
    letter_jumble manipulate_matrix number_filtering number_sorting palindrome_generation palindrome_partitioning
    pool_matrix ransom_note rotate_matrix rotten_oranges sentence_reordering spell_backward spiral_matrix
    string_insertion string_manipulation string_splitting string_synthesis word_ladder word_sequence_reversal
    word_sorting arc_1d arc_agi rearc basic_arithmetic bitwise_arithmetic calendar_arithmetic chain_sum count_bits
    decimal_arithmetic decimal_chain_sum dice fraction_simplification gcd gsm_symbolic lcm leg_counting
    number_format power_function prime_factorization products time_intervals bf codeio color_cube_rotation
    figlet_font modulo_grid needle_haystack number_sequence rectangle_count rubiks_cube boxnet countdown
    emoji_mystery futoshiki kakurasu knight_swap mahjong_puzzle maze mini_sudoku n_queens puzzle24 rush_hour
    sokoban sudoku survo tower_of_hanoi tsumego advanced_geometry simple_geometry course_schedule
    family_relationships largest_island quantum_lock shortest_path acre list_functions aiw circuit_logic
    knights_knaves propositional_logic self_reference syllogism zebra_puzzles
"""
COMPOSITE = "rg:composite"
"""An id of the upstream that cannot be made: it lacks the configuration that this data set needs."""


def _entries() -> dict[str, Entry]:
    made: dict[str, Entry] = {}
    for game, (description, difficulties) in _GAMES.items():
        for difficulty, settings in difficulties.items():
            id = f"game:{game}-{difficulty}"
            needs = Needs.BROKEN if id in _MENDED else Needs.CORPUS if game in _OF_WORDS else Needs.NOTHING
            made[id] = Entry(id, Kind.GAME, description, needs, _MENDED.get(id, ""), settings)
    for id, (kind, description, settings) in _DATASETS.items():
        made[id] = Entry(id, kind, description, Needs.HUB, "", settings)
    for name in _REASONING.split():
        made[f"rg:{name}"] = Entry(f"rg:{name}", Kind.REASONING, f"reasoning_gym 0.1.23: {name}")
    made[COMPOSITE] = Entry(
        COMPOSITE,
        Kind.REASONING,
        "a mix of reasoning_gym data sets",
        Needs.BROKEN,
        "AssertionError: it names no parts",
    )
    return made


ENTRIES: dict[str, Entry] = _entries()
"""All 172 ids of the upstream's registry, games first."""

DEFAULT_DIFFICULTY = "easy"
"""What a game's name without a difficulty stands for."""


def _aliases() -> dict[str, str]:
    """Other spellings by their case-folded text: those that other frameworks use for the same environments."""
    made = {id.casefold(): id for id in ENTRIES}
    for game in _GAMES:
        made[f"game:{game}".casefold()] = f"game:{game}-{DEFAULT_DIFFICULTY}"
    for id in ENTRIES:
        category, _, name = id.partition(":")
        if category == "rg":
            made[f"reasoning_gym:{name}".casefold()] = id
        if category == "eval":
            made.setdefault(f"{ENTRIES[id].kind}:{name}".casefold(), id)
    return made


ALIASES: dict[str, str] = _aliases()


def find(name: str) -> Entry:
    """The entry of an id, of one in other letter case, or of an alias.

    Aliases are a game without its difficulty (the easy one), ``math:``, ``qa:`` and ``code:`` for what the
    upstream files under ``eval:`` alone, and ``reasoning_gym:`` for ``rg:``.

    Raises:
        UnknownEnvironment: with the nearest ids.
    """
    id = ALIASES.get(name.casefold())
    if id is None:
        raise UnknownEnvironment(name, list(ENTRIES), "list them with: llenvs list gem")
    return ENTRIES[id]
