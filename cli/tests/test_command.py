"""The command as a whole: how it begins, how it ends, what it may cost."""

import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from llenvs import __version__
from llenvs_cli import failures
from llenvs_cli.main import app


def test_version(llenvs):
    assert llenvs("--version").stdout == f"llenvs {__version__}\n"


def test_help_names_the_commands(llenvs):
    done = llenvs("--help")
    assert done.returncode == 0
    for command in ("run", "list", "info", "play", "prompts"):
        assert f" {command} " in done.stdout


def test_help_imports_nothing_heavy(environment_variables):
    code = (
        "import sys\nfrom llenvs_cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment_variables)
    loaded = set(done.stdout.rpartition("LOADED ")[2].split())
    heavy = {
        "rich",
        "pydantic",
        "yaml",
        "numpy",
        "httpx",
        "openai",
        "anyio",
        "tenacity",
        "xllamacpp",
        "reasoning_gym",
    }
    assert loaded.isdisjoint(heavy)
    assert "typer" in loaded


def test_the_entry_point_is_the_module(environment_variables):
    command = os.path.join(os.path.dirname(sys.executable), "llenvs")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, env=environment_variables)
    assert done.stdout == f"llenvs {__version__}\n"


def test_a_reader_that_leaves_early_causes_no_noise(environment_variables):
    command = (
        f"{sys.executable} -m llenvs_cli prompts | head -1; {sys.executable} -m llenvs_cli list --json | head -1"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment_variables)
    assert done.stdout == "System prompts\n{\n"
    assert done.stderr == ""


def test_an_unknown_command_has_status_2(llenvs):
    done = llenvs("rnu")
    assert done.returncode == 2
    assert "rnu" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_is_served(llenvs, encoding):
    for arguments in (("--help",), ("prompts",), ("run", "--help")):
        done = llenvs(*arguments, PYTHONIOENCODING=encoding, LC_ALL="C")
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def test_an_unexpected_error_is_short_and_says_how_to_see_more(llenvs):
    done = llenvs("play", "toy/failing", stdin="x\n")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first == "Unexpected error: ZeroDivisionError: the scorer has a bug"
    assert second.endswith("LLENVS_DEBUG=1 llenvs ... shows the traceback.")
    done = llenvs("play", "toy/failing", stdin="x\n", LLENVS_DEBUG="1")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "toy_arena.py" in done.stderr


def test_an_error_with_a_file_names_it(capsys):
    @failures.says_failures
    def command() -> None:
        open("/nowhere/at/all", encoding="utf-8").close()

    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == failures.REFUSED
    assert capsys.readouterr().err == "Error: /nowhere/at/all: No such file or directory\n"


@pytest.mark.usefixtures("toys_in_process")
def test_commands_run_inside_a_process_as_well():
    runner = CliRunner()
    shown = runner.invoke(app, ["info", "toy/sums"])
    assert shown.exit_code == 0
    assert "What is 0 + 1?" in shown.stdout
    refused = runner.invoke(app, ["info", "toy/summs"])
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: unknown environment 'summs'")
