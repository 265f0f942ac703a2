"""States of simulators are read by processes that know of no simulator."""

from __future__ import annotations

import subprocess
import sys

from llenvs import Action, Observation, State
from llenvs.core.simulator import Recipe, Turn


def test_a_state_is_read_where_only_llenvs_was_imported() -> None:
    recipe = Recipe("some/game", 1, 2, (Turn.of(Action("north"), Observation("A hall."), ()),))
    text = State(Observation("A hall."), {"recipe": recipe}).to_json()
    program = (
        "import sys, llenvs\n"
        "assert 'llenvs.core.simulator' not in sys.modules\n"
        "state = llenvs.State.from_json(sys.stdin.read())\n"
        "print(state.to_json(), end='')"
    )
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", text)
