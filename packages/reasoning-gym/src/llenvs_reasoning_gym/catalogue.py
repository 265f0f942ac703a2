"""What the upstream has, known without importing it (its import takes seconds)."""

from __future__ import annotations

UPSTREAM_RELEASE = "0.1.25"
"""The release of reasoning-gym that the tables of this package describe."""

COMPOSITE = "composite"
"""Name of the dataset that mixes others."""

WITHOUT_CURRICULUM = frozenset({"acre", "gsm_symbolic", "list_functions", COMPOSITE})
"""Datasets for which the upstream has no curriculum, so no `level`."""

_BY_CATEGORY: dict[str, dict[str, str]] = {
    "algebra": {
        "complex_arithmetic": "add, subtract, multiply and divide complex numbers",
        "intermediate_integration": "indefinite integrals by substitution or by parts",
        "polynomial_equations": "real solutions of a polynomial equation",
        "polynomial_multiplication": "the product of polynomials",
        "simple_equations": "a linear equation in one variable",
        "simple_integration": "the integral of a polynomial",
    },
    "algorithmic": {
        "ab": "rewrite a program of the A::B token system to its end",
        "base_conversion": "a number from one base to another",
        "binary_alternation": "fewest swaps to make a binary string alternate",
        "binary_matrix": "distance to the nearest 0 for every cell",
        "caesar_cipher": "decrypt a Caesar cipher",
        "count_primes": "number of primes in an interval",
        "cryptarithm": "letters for digits in a sum",
        "game_of_life": "the board after some steps of the Game of Life",
        "game_of_life_halting": "whether a Game of Life halts within some steps",
        "graph_color": "colour a graph with few colours",
        "group_anagrams": "group words that are anagrams",
        "isomorphic_strings": "whether two strings are isomorphic",
        "jugs": "moves that measure a volume with jugs",
        "letter_counting": "how often a letter occurs in a text",
        "letter_jumble": "words whose letters were swapped",
        "manipulate_matrix": "a matrix after a series of transformations",
        "number_filtering": "keep or remove numbers of a list by size",
        "number_sorting": "sort numbers",
        "palindrome_generation": "a palindrome from given letters",
        "palindrome_partitioning": "all partitions of a string into palindromes",
        "pool_matrix": "max or average pooling of a matrix",
        "ransom_note": "whether a note can be cut out of a magazine",
        "rotate_matrix": "a matrix turned by multiples of 90 degrees",
        "rotten_oranges": "minutes until every orange is rotten",
        "sentence_reordering": "words of a sentence in their order",
        "spell_backward": "a word spelled backward",
        "spiral_matrix": "a matrix read in a spiral",
        "string_insertion": "insert letters after certain patterns",
        "string_manipulation": "apply rules to a string until it repeats",
        "string_splitting": "simulate machines that take parts apart",
        "string_synthesis": "simulate machines that put parts together",
        "word_ladder": "from one word to another, one letter at a time",
        "word_sequence_reversal": "a list of words reversed",
        "word_sorting": "sort words by their characters",
    },
    "arc": {
        "arc_1d": "one-dimensional grids: find the rule and apply it",
        "arc_agi": "tasks of ARC-AGI-1, turned and recoloured",
        "rearc": "tasks of ARC-AGI-1, generated anew (Re-ARC)",
    },
    "arithmetic": {
        "basic_arithmetic": "an expression of whole numbers",
        "bitwise_arithmetic": "an expression of hexadecimal numbers with shifts",
        "calendar_arithmetic": "weekdays, spans and leap years",
        "chain_sum": "a chain of additions and subtractions",
        "count_bits": "number of 1 bits of a number",
        "decimal_arithmetic": "an expression of decimals to a precision",
        "decimal_chain_sum": "a chain of additions and subtractions of decimals",
        "dice": "the chance that dice reach a sum",
        "fraction_simplification": "a fraction in lowest terms",
        "gcd": "greatest common divisor",
        "gsm_symbolic": "word problems from GSM-Symbolic templates",
        "lcm": "least common multiple",
        "leg_counting": "legs of a list of animals",
        "number_format": "the largest or smallest of numbers in several notations",
        "power_function": "a power to three significant figures",
        "prime_factorization": "prime factors of a number",
        "products": "a product of whole numbers",
        "time_intervals": "the time between two dates or clock times",
    },
    "code": {
        "bf": "the output of a Brainfuck program",
        "codeio": "input or output of a Python program (CodeI/O)",
    },
    "cognition": {
        "color_cube_rotation": "the colour of a side after turning a cube",
        "figlet_font": "a word written in FIGlet letters",
        "modulo_grid": "complete a grid that follows a modular rule",
        "needle_haystack": "one statement among many",
        "number_sequence": "the next number of a sequence",
        "rectangle_count": "number of rectangles in a drawing",
        "rubiks_cube": "moves that solve a scrambled cube",
    },
    "games": {
        "boxnet": "plan for robot arms that move boxes to targets",
        "countdown": "reach a number from given numbers",
        "emoji_mystery": "a sentence hidden in variation selectors of an emoji",
        "futoshiki": "a Futoshiki puzzle",
        "kakurasu": "a Kakurasu puzzle",
        "knight_swap": "exchange the knights of two sides",
        "mahjong_puzzle": "follow the rules of a simplified Mahjong",
        "maze": "length of the shortest way through a maze",
        "mini_sudoku": "a 4x4 Sudoku",
        "n_queens": "complete a board of non-attacking queens",
        "puzzle24": "make 24 from four numbers",
        "rush_hour": "free the red car",
        "sokoban": "push all boxes onto targets",
        "sudoku": "a 9x9 Sudoku",
        "survo": "a Survo puzzle",
        "tower_of_hanoi": "moves that solve a Tower of Hanoi",
        "tsumego": "the capturing move on a Go board",
    },
    "geometry": {
        "advanced_geometry": "orthocentre, incircle radius or angle of a triangle",
        "simple_geometry": "the missing angle of a polygon",
    },
    "graphs": {
        "course_schedule": "whether courses with prerequisites can be finished",
        "family_relationships": "how two members of a family are related",
        "largest_island": "area of the largest island",
        "path_star": "the path from centre to goal in a star graph",
        "quantum_lock": "button presses that reach a value",
        "shortest_path": "directions through a grid",
    },
    "induction": {
        "acre": "which objects set off a detector (ACRE)",
        "list_functions": "find the function from examples of lists",
    },
    "logic": {
        "aiw": "Alice-in-Wonderland questions about relatives and friends",
        "circuit_logic": "the output of a circuit of gates",
        "knights_knaves": "who tells the truth",
        "propositional_logic": "a conclusion that follows from premises",
        "self_reference": "how many assignments satisfy statements about themselves",
        "syllogism": "whether a conclusion follows",
        "zebra_puzzles": "who owns what (Einstein's riddle)",
    },
    "probability": {
        "coin_flip": "the chance of a number of heads",
    },
}

CATEGORY: dict[str, str] = {name: category for category, names in _BY_CATEGORY.items() for name in names}
"""Category of each of the 105 generators (`composite` has none of its own)."""

DESCRIPTION: dict[str, str] = {name: text for names in _BY_CATEGORY.values() for name, text in names.items()}
"""One line about each of the 105 generators."""

_EXECUTES = "the upstream's scorer executes the answer"
_HASH_SEED = "its items depend on Python's hash seed"
_UNBOUNDED = "the time its scorer takes is not bounded by the length of the answer"
_PRINTS = "it prints to stdout"
_EVALUATES_ITEM = "the upstream's scorer evaluates text of the item"

ISOLATED: dict[str, str] = {
    "bf": _PRINTS,
    "binary_matrix": _EXECUTES,
    "bitwise_arithmetic": _EVALUATES_ITEM,
    "codeio": "making an item runs a stored program",
    "coin_flip": _UNBOUNDED,
    "complex_arithmetic": _UNBOUNDED,
    "countdown": _EXECUTES,
    "decimal_arithmetic": "it changes the thread's decimal context",
    "intermediate_integration": _EXECUTES,
    "isomorphic_strings": _HASH_SEED,
    "knight_swap": _HASH_SEED,
    "list_functions": "it draws from the global random generator",
    "n_queens": _EXECUTES,
    "number_sorting": _EVALUATES_ITEM,
    "polynomial_multiplication": _EXECUTES,
    "pool_matrix": "it seeds numpy's global random generator",
    "prime_factorization": _UNBOUNDED,
    "propositional_logic": _UNBOUNDED,
    "puzzle24": _EXECUTES,
    "quantum_lock": _UNBOUNDED,
    "ransom_note": _HASH_SEED,
    "rectangle_count": _PRINTS,
    "rubiks_cube": _UNBOUNDED,
    "rush_hour": _UNBOUNDED,
    "simple_integration": _EXECUTES,
    "sokoban": _UNBOUNDED,
    "spiral_matrix": _EXECUTES,
    "string_insertion": _EXECUTES,
    "tower_of_hanoi": _PRINTS,
    "word_ladder": _HASH_SEED,
}
"""Datasets that live in the worker process (see `worker`), with the reason. The others' items and scorers are
functions of their arguments whose time is linear in the answer, and run in the caller's process."""


def names() -> list[str]:
    """The 105 generators and `composite`, by category and name."""
    return [*CATEGORY, COMPOSITE]
