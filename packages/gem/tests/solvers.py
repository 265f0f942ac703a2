"""Players that know the rules: they see what a model sees (the event and the board), and win.

Each is a generator: it yields a move and is sent the event and the board that followed.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from functools import partial

Player = Generator[str, tuple[str, str], None]


def guess_the_number(rules: str, board: str) -> Player:
    low, high = map(int, re.search(r"between (\d+) and (\d+)", rules).groups())  # type: ignore[union-attr]
    while True:
        middle = (low + high) // 2
        event, _ = yield str(middle)
        low, high = (middle + 1, high) if "is higher" in event else (low, middle - 1)


def tower_of_hanoi(rules: str, board: str) -> Player:
    disks = int(re.search(r"with (\d+) disks", rules)[1])  # type: ignore[index]

    def moves(count: int, source: str, target: str, other: str) -> list[str]:
        if count == 0:
            return []
        return [
            *moves(count - 1, source, other, target),
            f"{source} {target}",
            *moves(count - 1, other, target, source),
        ]

    for move in moves(disks, "A", "C", "B"):  # noqa: UP028 - a list takes no send
        yield move


def mastermind(rules: str, board: str) -> Player:
    length = int(re.search(r"secret (\d+) digit", rules)[1])  # type: ignore[index]
    highest = int(re.search(r"from 1 to (\d+)", rules)[1])  # type: ignore[index]
    codes = list(itertools.permutations(range(1, highest + 1), length))
    while True:
        guess = codes[0]
        event, _ = yield " ".join(map(str, guess))
        pegs = tuple(map(int, re.search(r"(\d+) black peg\(s\) and (\d+) white", event).groups()))  # type: ignore[union-attr]
        codes = [code for code in codes if _pegs(code, guess) == pegs]


def _pegs(code: Sequence[int], guess: Sequence[int]) -> tuple[int, int]:
    black = sum(a == b for a, b in zip(code, guess, strict=True))
    return black, sum((Counter(code) & Counter(guess)).values()) - black


def wordle(words: Sequence[str], rules: str, board: str) -> Player:
    length = int(re.search(r"secret (\d+)-letter", rules)[1])  # type: ignore[index]
    left = sorted({w.upper() for w in words if len(w) == length and w.isalpha() and w.islower()})
    while True:
        guess = left[0]
        event, _ = yield guess
        marks = "".join(re.findall(r"'([GYX])'", event))
        left = [word for word in left if _marks(word, guess) == marks]


def _marks(word: str, guess: str) -> str:
    spare = Counter(w for w, g in zip(word, guess, strict=True) if w != g)
    marks = ""
    for w, g in zip(word, guess, strict=True):
        if w == g:
            marks += "G"
        elif spare[g] > 0:
            spare[g] -= 1
            marks += "Y"
        else:
            marks += "X"
    return marks


def hangman(words: Sequence[str], rules: str, board: str) -> Player:
    length = int(re.search(r"guess the (\d+)-letter", rules)[1])  # type: ignore[index]
    left = sorted({w.upper() for w in words if len(w) == length and w.isalpha() and w.islower()})
    tried: set[str] = set()
    while True:
        if len(left) == 1:
            yield left[0]
            return
        counts = Counter(letter for word in left for letter in set(word) - tried)
        letter = min(counts, key=lambda each: (abs(counts[each] - len(left) / 2), each))
        tried.add(letter)
        _, board = yield letter
        shown = board.split("C00")[1].splitlines()[1].split()
        left = [word for word in left if _fits(word, shown, tried)]


def _fits(word: str, shown: Sequence[str], tried: set[str]) -> bool:
    return all(s == w if s != "_" else w not in tried for w, s in zip(word, shown, strict=True))


def sudoku(rules: str, board: str) -> Player:
    lines = [line for line in board.splitlines() if re.match(r"R\d", line)]
    grid = [[0 if c == "." else int(c) for c in re.findall(r"[.\d]", line[2:])] for line in lines]
    empty = [(i, j) for i, row in enumerate(grid) for j, value in enumerate(row) if not value]
    assert _solve(grid)
    for i, j in empty:
        yield f"{i + 1} {j + 1} {grid[i][j]}"


def _solve(grid: list[list[int]]) -> bool:
    size = len(grid)
    box = int(size**0.5)
    best: tuple[int, int, list[int]] | None = None
    for i in range(size):
        for j in range(size):
            if grid[i][j]:
                continue
            top, left = i - i % box, j - j % box
            used = {*grid[i], *(row[j] for row in grid)}
            used |= {v for row in grid[top : top + box] for v in row[left : left + box]}
            options = [v for v in range(1, size + 1) if v not in used]
            if best is None or len(options) < len(best[2]):
                best = i, j, options
    if best is None:
        return True
    i, j, options = best
    for value in options:
        grid[i][j] = value
        if _solve(grid):
            return True
    grid[i][j] = 0
    return False


def fifteen_puzzle(rules: str, board: str) -> Player:
    """Plays nothing where the board cannot be solved."""
    lines = [line for line in board.splitlines() if re.fullmatch(r"[ \d_]+", line)]
    start = tuple(0 if tile == "__" else int(tile) for line in lines for tile in line.split())
    size = len(lines)
    goal = (*range(1, size * size), 0)

    def after(tiles: tuple[int, ...], move: str) -> tuple[int, ...] | None:
        hole = tiles.index(0)
        row, column = divmod(hole, size)
        down, right = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}[move]
        if not (0 <= row + down < size and 0 <= column + right < size):
            return None
        other = (row + down) * size + column + right
        moved = list(tiles)
        moved[hole], moved[other] = moved[other], 0
        return tuple(moved)

    for move in shortest(start, ("up", "down", "left", "right"), after, lambda tiles: tiles == goal) or ():  # noqa: UP028 - a list takes no send
        yield move


def sokoban(rules: str, board: str) -> Player:
    rows = [line.split() for line in board.splitlines() if re.fullmatch(r"([#_O√XPS] ?)+", line)]
    cells = {(i, j): cell for i, row in enumerate(rows) for j, cell in enumerate(row)}
    floor = {place for place, cell in cells.items() if cell != "#"}
    player = next(place for place, cell in cells.items() if cell in "PS")
    boxes = frozenset(place for place, cell in cells.items() if cell in "X√")
    # a goal under the player is not shown; the boxes tell how many goals there are
    goals = {place for place, cell in cells.items() if cell in "O√S"}
    if len(goals) < len(boxes):
        goals.add(player)
    ways = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    Standing = tuple[tuple[int, int], frozenset[tuple[int, int]]]

    def after(standing: Standing, move: str) -> Standing | None:
        (i, j), standing_boxes = standing
        di, dj = ways[move]
        there, beyond = (i + di, j + dj), (i + 2 * di, j + 2 * dj)
        if there not in floor:
            return None
        if there not in standing_boxes:
            return there, standing_boxes
        if beyond not in floor or beyond in standing_boxes:
            return None
        return there, (standing_boxes - {there}) | {beyond}

    for move in shortest((player, boxes), tuple(ways), after, lambda standing: standing[1] <= goals) or ():  # noqa: UP028 - a list takes no send
        yield move


def word_search(words: Sequence[str], rules: str, board: str) -> Player:
    rows = [re.findall(r"[A-Z]", line[3:]) for line in board.splitlines() if re.match(r"R\d\d", line)]
    found: list[tuple[int, str]] = []
    for word in {w.upper() for w in words}:
        for i, j in itertools.product(range(len(rows)), repeat=2):
            if "".join(rows[i][j : j + len(word)]) == word:
                found.append((len(word), f"{i} {j} {i} {j + len(word) - 1}"))
            if "".join(row[j] for row in rows[i : i + len(word)]) == word:
                found.append((len(word), f"{i} {j} {i + len(word) - 1} {j}"))
    for _, move in sorted(found, reverse=True):
        yield move


def shortest(start: object, moves: Sequence[str], after: Callable, reached: Callable) -> list[str] | None:  # type: ignore[type-arg]
    """The fewest moves that lead from `start` to a place that is `reached`; None if there are none."""
    came: dict[object, tuple[object, str] | None] = {start: None}
    places = deque([start])
    while places:
        place = places.popleft()
        if reached(place):
            way: list[str] = []
            while came[place] is not None:
                place, move = came[place]  # type: ignore[misc]
                way.append(move)
            return way[::-1]
        for move in moves:
            then = after(place, move)
            if then is not None and then not in came:
                came[then] = place, move
                places.append(then)
    return None


def player_for(id: str, words: Sequence[str]) -> Callable[[str, str], Player] | None:
    """Who plays the game `id`, if anybody does."""
    game = id.partition(":")[2].partition("-")[0]
    with_words = {"Wordle": wordle, "Hangman": hangman, "WordSearch": word_search}
    if game in with_words:
        return partial(with_words[game], words)
    return {
        "GuessTheNumber": guess_the_number,
        "TowerofHanoi": tower_of_hanoi,
        "Mastermind": mastermind,
        "Sudoku": sudoku,
        "FifteenPuzzle": fifteen_puzzle,
        "Sokoban": sokoban,
    }.get(game)
