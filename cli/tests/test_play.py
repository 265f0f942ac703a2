import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolDefinition
from llenvs_cli.playing.commands import Answer, Command, UnknownCommand, parse_entry, parse_tool_call


def test_a_single_turn_task_from_a_pipe(llenvs):
    done = llenvs("play", "toy/sums", "--task-index", "4", stdin="I think <answer>5</answer>\n")
    assert done.returncode == 0, done.stderr
    assert "toy/sums  task 4 of 10, seed 0" in done.stdout
    assert "What is 4 + 1?" in done.stdout
    assert "> I think <answer>5</answer>" in done.stdout
    assert "Understood as: 5" in done.stdout
    assert done.stdout.splitlines()[-1] == "Episode over after 1 step: success"


def test_a_wrong_answer_shows_the_feedback_of_the_signal(llenvs):
    done = llenvs("play", "toy/sums", "--task-index", "4", stdin="<answer>7</answer>\n")
    signals = [line.split() for line in done.stdout.splitlines() if line.startswith("score")]
    assert signals == [["score", "outcome", "0", "1", "not", "the", "sum:", "7"]]
    assert done.stdout.splitlines()[-1] == "Episode over after 1 step: no success"


def test_an_answer_without_the_tags_says_that_none_was_found(llenvs):
    done = llenvs("play", "toy/sums", "--task-index", "4", stdin="5\n")
    assert "No answer was found in what you wrote." in done.stdout
    done = llenvs("play", "toy/sums", "--task-index", "4", "-o", "answer_extractor=raw", stdin="5\n")
    assert done.stdout.splitlines()[-1] == "Episode over after 1 step: success"


def test_equal_seeds_draw_equal_tasks(llenvs):
    first = llenvs("play", "toy/sums", "--seed", "5", stdin="x\n").stdout
    assert first == llenvs("play", "toy/sums", "--seed", "5", stdin="x\n").stdout
    assert "task 9 of 10, seed 5" in first  # random.Random(5).randrange(10)


def test_multiline_answers_end_with_a_dot(llenvs):
    stdin = "one\n<answer>\n5\n</answer>\n.\n"
    done = llenvs("play", "toy/sums", "--task-index", "4", "--multiline", stdin=stdin)
    assert "> one\n| <answer>\n| 5\n| </answer>\n| .\nUnderstood as: 5" in done.stdout


def test_multiline_answers_end_with_the_input_as_well(llenvs):
    done = llenvs("play", "toy/sums", "--task-index", "4", "-m", stdin="<answer>\n5</answer>")
    assert done.stdout.splitlines()[-1] == "Episode over after 1 step: success"


def test_tools_are_called_with_json_or_with_pairs(llenvs):
    stdin = '/call turn {"to": 1}\n/call turn to=2 note=07\n/call turn to=3\n'
    done = llenvs("play", "toy/lock", stdin=stdin)
    assert "--- result of turn ---\nturned to 1, note None" in done.stdout
    assert "turned to 2, note '07'" in done.stdout  # declared a string, so it stays text
    assert done.stdout.splitlines()[-1] == "Episode over after 3 steps, reward in all 1: success"


def test_a_tool_that_is_none_is_the_environments_to_refuse(llenvs):
    done = llenvs("play", "toy/lock", stdin="/call spin\n")
    assert "--- result of spin (unknown tool) ---\nthere is no spin" in done.stdout


def test_back_returns_to_the_state_before(llenvs):
    stdin = "/back\n/call turn to=9\n/back\n/call turn to=1\n/call turn to=2\n/call turn to=3\n"
    done = llenvs("play", "toy/lock", stdin=stdin)
    assert "This is the first state." in done.stdout
    assert done.stdout.splitlines()[-1] == "Episode over after 3 steps, reward in all 1: success"


def test_the_step_limit_is_told_from_an_end(llenvs):
    done = llenvs("play", "toy/lock", stdin="a\n" * 6)
    assert done.stdout.splitlines()[-1] == (
        "Episode cut off by the step limit after 6 steps, reward in all 0: no success"
    )


def test_mistakes_in_commands_cost_no_step(llenvs):
    stdin = "/cal turn\n/call\n/call turn {to: 1\n/call turn 5\n\n/tools\n/show\n/help\n/quit\n"
    done = llenvs("play", "toy/lock", stdin=stdin)
    assert done.returncode == 0
    assert "unknown command '/cal'; did you mean '/call'?" in done.stdout
    assert "/call: needs the name of a tool, got ''; valid: turn" in done.stdout
    assert "/call turn: is no JSON" in done.stdout
    assert "/call turn: is no argument, got '5'; valid: {\"key\": value} or key=value" in done.stdout
    assert "Nothing sent." in done.stdout
    assert '"required": ["to"]' in done.stdout
    assert "/back: go back one step" in done.stdout
    assert done.stdout.splitlines()[-1] == "Left after 0 steps, reward so far 0."


def test_the_end_of_input_is_a_polite_end(llenvs):
    done = llenvs("play", "toy/lock", stdin="hello\n")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "Left after 1 step, reward so far 0."


def test_text_of_the_environment_cannot_steer_the_terminal(llenvs):
    done = llenvs("play", "toy/hostile", "--task-index", "0", stdin="[/red]\x1b[31m\n")
    assert "\\x1b[2J\\x1b]0;owned\\x07[bold red]not markup[/] [/oops] :smile:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("toy/sums", "--task-index", "99"), "Error: toy/sums: task_index 99 is out of range; valid: 0 to 9"),
        (("toy/lokc",), "Error: unknown environment 'lokc'; did you mean 'lock'?"),
        (("nowhere/at_all",), "Error: unknown adapter 'nowhere'"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(llenvs, arguments, said):
    done = llenvs("play", *arguments, stdin="x\n")
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_entries_are_answers_unless_they_begin_with_a_slash():
    assert parse_entry("go north") == Answer("go north")
    assert parse_entry("//help me") == Answer("/help me")
    assert parse_entry("/call turn to=1") == Command("call", "turn to=1")
    with pytest.raises(UnknownCommand) as caught:
        parse_entry("/qit")
    assert caught.value.suggestions == ("/quit",)


def test_tool_arguments_follow_the_schema():
    tool = ToolDefinition("f", "", {"type": "object", "properties": {"id": {"type": "string"}, "n": {}}})
    assert parse_tool_call("f id=007 n=7 extra='[1, 2]'", (tool,)) == ("f", {"id": "007", "n": 7, "extra": [1, 2]})
    assert parse_tool_call('f {"id": null}', (tool,)) == ("f", {"id": None})
    assert parse_tool_call("f", (tool,)) == ("f", {})
    for wrong in ('f {"a": }', "f [1]", "f id='x"):
        with pytest.raises(InvalidOption):
            parse_tool_call(wrong, (tool,))


class Terminal:
    """The command on a pseudo-terminal: what it writes is read, keys are sent."""

    def __init__(self, arguments: list[str], variables: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llenvs_cli", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables,
            start_new_session=True,
        )
        os.close(slave)
        self.written = ""
        self._seen = 0

    def read_until(self, text: str, seconds: float = 60) -> None:
        """Reads on until `text` has come after the one waited for before."""
        end = time.monotonic() + seconds
        while (found := self.written.find(text, self._seen)) < 0:
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not come; so far: {self.written}")
            try:
                self.written += os.read(self.master, 4096).decode()
            except OSError:
                raise AssertionError(f"ended without {text!r}; so far: {self.written}") from None
        self._seen = found + len(text)

    def send(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait(self) -> int:
        return self.process.wait(timeout=60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(environment_variables):
    opened: list[Terminal] = []

    def run(*arguments: str, **variables: str) -> Terminal:
        opened.append(Terminal(list(arguments), {**environment_variables, **variables}))
        return opened[-1]

    yield run
    for each in opened:
        each.close()


def test_on_a_terminal_a_person_plays_to_the_end(terminal):
    session = terminal("play", "toy/lock")
    for number in (1, 2, 3):
        session.read_until("> ")
        session.send(f"/call turn to={number}\r")
    session.read_until("success")
    assert session.wait() == 0
    assert "\x1b[" in session.written  # colours


def test_no_color_is_respected(terminal):
    session = terminal("play", "toy/sums", NO_COLOR="1", TERM="dumb")
    session.read_until("> ")
    session.send("\x04")
    session.read_until("Left after 0 steps")
    assert session.wait() == 0
    assert "\x1b[3" not in session.written


def test_control_d_ends_politely(terminal):
    session = terminal("play", "toy/lock")
    session.read_until("> ")
    session.send("\x04")
    session.read_until("Left after 0 steps, reward so far 0.")
    assert session.wait() == 0


def test_control_c_ends_with_status_130(terminal):
    session = terminal("play", "toy/lock")
    session.read_until("> ")
    session.process.send_signal(signal.SIGINT)
    # A signal between the prompt and readline's wait is only noticed with the next key.
    session.send("\r")
    session.read_until("Left after 0 steps, reward so far 0.")
    session.read_until("Interrupted.")
    assert session.wait() == 130
    assert "Traceback" not in session.written
