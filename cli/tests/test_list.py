import json

import pytest
from typer.testing import CliRunner

from llenvs.core import registry
from llenvs.inference import backends
from llenvs_cli.main import app


def test_overview_names_adapters_backends_and_what_is_broken(llenvs):
    done = llenvs("list")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert "6 environments" in lines["toy"]
    assert "Environments to try the commands on." in lines["toy"]
    assert (
        "No module named 'toy_arena_that_is_absent'" in done.stdout
    )  # the broken one says why and hides no other
    assert "Answers by script." in lines["scripted"]
    assert done.stderr == ""


def test_overview_as_json(llenvs):
    overview = json.loads(llenvs("list", "--json").stdout)
    adapters = {each["name"]: each for each in overview["adapters"]}
    assert adapters["toy"] == {
        "name": "toy",
        "environments": 6,
        "description": "Environments to try the commands on.",
    }
    assert "No module named 'toy_arena_that_is_absent'" in adapters["broken"]["error"]
    assert "scripted" in [each["name"] for each in overview["backends"]]


@pytest.mark.usefixtures("toys_in_process")
def test_what_is_not_installed_comes_with_its_install_command(monkeypatch):
    monkeypatch.setitem(registry.CATALOGUE, "mars", "mars-rover")
    monkeypatch.setitem(backends.CATALOGUE, "abacus", ("llenvs_abacus", "Abacus"))
    runner = CliRunner()
    shown = runner.invoke(app, ["list"]).stdout
    assert 'pip install "llenvs[mars-rover]"' in shown
    assert 'pip install "llenvs[abacus]"' in shown
    overview = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert overview["installable_adapters"]["mars"] == 'pip install "llenvs[mars-rover]"'
    assert overview["installable_backends"]["abacus"] == 'pip install "llenvs[abacus]"'
    refused = runner.invoke(app, ["list", "mars"])
    assert refused.exit_code == 2
    assert refused.stderr == "Error: adapter 'mars' is not installed; run: pip install \"llenvs[mars-rover]\"\n"


def test_environments_of_an_adapter_stand_under_their_categories(llenvs):
    lines = llenvs("list", "toy").stdout.splitlines()
    assert lines[0] == "toy: 6 environments"
    headings = [lines.index("arithmetic (3)"), lines.index("puzzles (2)")]
    places = {line.split()[0]: number for number, line in enumerate(lines) if line.startswith("  ")}
    assert headings[0] < places["sums"] < headings[1] < places["lock"]


def test_text_of_an_adapter_is_shown_literally(llenvs):
    done = llenvs("list", "toy")
    assert "Text with [bold]markup[/bold] and \\x1b[31mescapes." in done.stdout
    assert "\x1b" not in done.stdout


def test_environments_as_json_hold_everything(llenvs):
    listed = json.loads(llenvs("list", "toy", "--json").stdout)
    assert listed["adapter"] == "toy"
    assert listed["environments"][3] == {
        "id": "toy/lock",
        "name": "lock",
        "category": "puzzles",
        "description": "A lock with a dial.",
        "is_multi_turn": True,
        "metadata": {},
    }


def test_an_unknown_adapter_is_one_sentence_with_the_nearest(llenvs):
    done = llenvs("list", "toi")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: unknown adapter 'toi'; did you mean 'toy'? (list them with: llenvs list)\n"


@pytest.mark.parametrize("width", ["20", "40", "200"])
def test_any_width_of_terminal_is_kept_and_no_name_is_cut(llenvs, width):
    done = llenvs("list", "toy", COLUMNS=width)
    assert done.returncode == 0
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert max(map(len, lines)) <= int(width)
    assert any(line.startswith("  slow_sums") for line in lines)
