import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from llenvs.core import registry
from llenvs.inference import backends
from llenvs_cli.main import app

CONFIG = """\
environments:
  - name: sums
    adapter: toy
    size: 10
    answer_extractor: tag_based
  - name: lock
    adapter: toy
    label: the_lock
model:
  backend: scripted
  script: I say <answer>1</answer>
system_prompt: general_reasoning
output_dir: ./results
log: []
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return "config.yaml"


def trajectories(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_run_ends_with_a_table_and_says_where_the_folder_is(llenvs, config, tmp_path):
    done = llenvs("run", config)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if "toy/sums" in line and "10/10" in line)
    assert row.split() == [
        "toy/sums",
        "10/10",
        "0",
        "10.0%",
        "1.8%",
        "-",
        "40.4%",
        "0.100",
    ]  # Wilson interval of 1 in 10
    assert re.search(
        r"  toy/sums  score 0\.1; reward 95% CI 0 - 0\.3; \d+ prompt and 30 completion tokens; ", done.stdout
    )
    assert re.search(r"  the_lock  open 0; ", done.stdout)
    assert done.stdout.splitlines()[-1] == "Results are in results"
    assert len(trajectories(tmp_path / "results")) == 13
    assert json.loads((tmp_path / "results" / "summary.json").read_text())["complete"] is True


def test_json_is_the_result_and_nothing_else(llenvs, config):
    result = json.loads(llenvs("run", config, "--json").stdout)
    assert result["environments"]["toy/sums"]["success_rate"] == 0.1
    assert result["num_done"] == 13


def test_limit_bounds_each_environment(quick, config, tmp_path):
    assert quick("run", config, "--limit", "2").returncode == 0
    done = {(each["environment"], each["task_index"]) for each in trajectories(tmp_path / "results")}
    assert done == {("toy/sums", 0), ("toy/sums", 1), ("the_lock", 0), ("the_lock", 1)}


def test_limit_bounds_what_an_environment_says_for_itself(quick, tmp_path):
    (tmp_path / "own.yaml").write_text(
        "environments:\n"
        "  - {name: toy/sums, label: a, num_tasks: 5}\n"
        "  - {name: toy/sums, label: b, task_indices: [7, 3, 1]}\n"
        "  - {name: toy/sums, label: c, num_tasks: 1}\n"
        "model: {backend: scripted}\nlog: []\n",
        encoding="utf-8",
    )
    assert quick("run", "own.yaml", "--limit", "2").returncode == 0
    done = sorted((each["environment"], each["task_index"]) for each in trajectories(tmp_path / "results" / "own"))
    assert done == [("a", 0), ("a", 1), ("b", 3), ("b", 7), ("c", 0)]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["sums"], ["toy/sums"]),
        (["toy/sums"], ["toy/sums"]),
        (["the_lock"], ["the_lock"]),
        (["toy/lock", "sums"], ["the_lock", "toy/sums"]),
        (["toy/hostile", "the_lock"], ["toy/hostile", "the_lock"]),
    ],
)
def test_environments_are_chosen_or_added_by_name(quick, config, names, labels):
    flags = [part for name in names for part in ("--environment", name)]
    done = quick("run", config, "--limit", "1", "--json", *flags)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["environments"]) == labels


def test_an_environment_that_is_nowhere_is_named_with_the_nearest(quick, config):
    done = quick("run", config, "--environment", "the_lok")
    assert done.returncode == 2
    assert done.stderr == (
        "Error: unknown environment 'the_lok'; did you mean 'the_lock'? "
        "(one that the configuration lacks is added as ADAPTER/NAME)\n"
    )


def test_a_run_needs_no_file(llenvs, tmp_path):
    done = llenvs("run", "-e", "toy/sums", "--backend", "scripted", "--set", "model.script=<answer>1</answer>")
    assert done.returncode == 0, done.stderr
    assert len(trajectories(tmp_path / "results" / "run")) == 10


def test_flags_take_the_place_of_fields(llenvs, config, tmp_path):
    done = llenvs(
        "run", config, "--limit", "1", "--output-dir", "elsewhere", "--log", "file", "--model", "puppet",
        "--set", "repeats=2", "--set", "model.script=<answer>2</answer>",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "puppet" in done.stdout
    assert len(trajectories(tmp_path / "elsewhere")) == 4
    assert (tmp_path / "elsewhere" / "events.jsonl").exists()
    assert not (tmp_path / "results").exists()


def test_the_same_command_resumes_and_pays_for_nothing_twice(llenvs, config, tmp_path):
    assert llenvs("run", config, "--limit", "2").returncode == 0
    first = trajectories(tmp_path / "results")
    done = llenvs("run", config)
    assert done.returncode == 0, done.stderr
    assert trajectories(tmp_path / "results")[:4] == first
    assert len(trajectories(tmp_path / "results")) == 13
    refused = llenvs("run", config, "--no-resume")
    assert refused.returncode == 2
    assert "already holds a run" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_folder_of_another_run_is_refused(llenvs, config):
    assert llenvs("run", config, "--limit", "1").returncode == 0
    refused = llenvs("run", config, "--limit", "1", "--set", "seed=5")
    assert refused.returncode == 2
    assert "holds a run of another configuration: seed is 0 there and 5 here" in refused.stderr


def test_a_dry_run_shows_the_prompts_and_sends_nothing(llenvs, config, tmp_path):
    done = llenvs("run", config, "--dry-run", "--limit", "4")
    assert done.returncode == 0, done.stderr
    assert "num_tasks: 4" in done.stdout
    assert "toy/sums  4 of 10 tasks" in done.stdout
    assert (
        "--- system ---\nYou solve problems carefully.\nThink step by step.\n"
        "Write your final answer between <answer> and </answer>.\n--- user ---\nWhat is 0 + 1?\n" in done.stdout
    )
    assert "turn(to: integer, note?: string)" in done.stdout
    assert done.stdout.splitlines()[-1] == "Dry run: 7 trajectories would run, nothing was sent."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml"]


def test_a_dry_run_hides_keys(quick, config):
    done = quick("run", config, "--dry-run", "--backend", "toy_dead", "--set", "model={api_key: sk-secret}")
    assert done.returncode == 0, done.stderr
    assert "api_key: (hidden)" in done.stdout
    assert "sk-secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "system_prompt: general_reasoning",
            "sytem_prompt: x",
            "line 12: sytem_prompt: unknown field",
        ),
        ("general_reasoning", "general_resoning", "line 12: system_prompt: unknown system prompt"),
        ("    size: 10", "    sizee: 10", "line 4: environments[0].sizee: unknown option 'sizee'"),
        (
            "    size: 10",
            "    size: -1",
            "line 4: environments[0].size: input should be greater than",
        ),
        ("name: sums", "name: summs", "line 2: environments[0].name: unknown environment 'summs'"),
        ("adapter: toy", "adapter: toi", "line 3: environments[0].adapter: unknown adapter 'toi'"),
        (
            "tag_based",
            "tag_bsed",
            "line 5: environments[0].answer_extractor: unknown answer extractor",
        ),
        (
            "backend: scripted",
            "backend: scriptd",
            "line 10: model.backend: unknown backend 'scriptd'",
        ),
        ("log: []", "log: consol", "line 14: log: unknown logger 'consol'; did you mean 'console'?"),
        ("model:", "model: [", "line 11: not valid YAML"),
    ],
)
def test_mistakes_in_the_file_name_line_field_and_nearest(quick, config, tmp_path, old, new, said):
    (tmp_path / config).write_text(CONFIG.replace(old, new, 1), encoding="utf-8")
    done = quick("run", config)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: config.yaml, {said}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("flags", [("-e", "lock", "-e", "sums"), ("--limit", "1", "--set", "num_tasks=3")])
def test_mistakes_in_a_chosen_environment_name_the_line_in_the_file(quick, config, tmp_path, flags):
    text = CONFIG.replace("    size: 10", "    sizee: 10").replace("label: the_lock", "num_tasks: 2")
    (tmp_path / config).write_text(text, encoding="utf-8")
    done = quick("run", config, *flags)
    assert done.stderr.startswith("Error: config.yaml, line 4: environments[0].sizee: unknown option 'sizee'")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent.yaml",), "absent.yaml: no such file"),
        (("config.yaml", "--limit", "0"), "--limit: must be at least 1, got 0"),
        (("config.yaml", "--set", "repeats"), "--set: is not of the form KEY=VALUE, got 'repeats'"),
        (("config.yaml", "--set", "repeats=0"), "command line: repeats: "),
        (
            ("config.yaml", "--log", "consol"),
            "command line: log: unknown logger 'consol'; did you mean",
        ),
        (("config.yaml", "--backend", "nope"), "command line: model.backend: unknown backend 'nope'"),
        (("config.yaml", "-e", "reasoning_gim/x"), "command line: environments[0].name: unknown adapter"),
        ((), "environments: is missing"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(quick, config, arguments, said):
    done = quick("run", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {said}"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("made", "toy_dead: no key; set TOY_KEY"),
        ("checked", "toy_dead: nothing answers at nowhere:1"),
        ("asked", "toy_dead: there is no model 'toy'"),
    ],
)
def test_what_is_wrong_with_the_model_is_one_sentence(quick, fails, said):
    done = quick("run", "-e", "toy/sums", "--backend", "toy_dead", "--set", f"model.fails={fails}", "--log", "")
    assert done.returncode == 2
    assert done.stderr == f"Error: {said}\n"
    assert done.stdout == ""


@pytest.mark.usefixtures("toys_in_process")
def test_a_backend_that_is_not_installed_comes_with_its_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(backends.CATALOGUE, "abacus", ("llenvs_abacus", "Abacus"))
    done = CliRunner().invoke(app, ["run", "-e", "toy/sums", "--backend", "abacus"])
    assert done.exit_code == 2
    assert done.stderr.endswith("backend 'abacus' is not installed; run: pip install \"llenvs[abacus]\"\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("toys_in_process")
def test_an_adapter_that_is_not_installed_comes_with_both_ways_to_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registry.CATALOGUE, "mars", "mars-rover")
    done = CliRunner().invoke(app, ["run", "-e", "mars/dust", "--backend", "scripted", "--set", "model.script=hm"])
    assert done.exit_code == 2
    assert done.stderr == (
        "Error: command line: environments[0].name: adapter 'mars' is not installed; "
        'run: pip install "llenvs[mars-rover]"; or keep it in a Python of its own: isolation: auto\n'
    )


def test_a_folder_with_a_run_of_other_environments_says_which(quick):
    run = ("run", "--backend", "scripted", "--set", "model.script=hm", "--limit", "1", "--output-dir", "kept")
    assert quick(*run, "-e", "toy/sums").returncode == 0
    refused = quick(*run, "-e", "toy/sums", "-e", "toy/lock")
    assert refused.returncode == 2
    assert 'environments is ["toy/sums"] there and ["toy/sums", "toy/lock"] here' in refused.stderr


def test_a_run_of_errors_alone_has_no_score_and_fails(llenvs, tmp_path):
    done = llenvs("run", "-e", "toy/failing", "--backend", "scripted", "--limit", "2", "--log", "")
    assert done.returncode == 2
    assert "2 (100.0%)" in done.stdout
    assert "ZeroDivisionError" in done.stdout
    assert done.stderr == "Error: every trajectory ended in an error, so there is no score.\n"
    assert [each["success"] for each in trajectories(tmp_path / "results" / "run")] == [None, None]


def start(arguments: list[str], folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "llenvs_cli", *arguments],
        cwd=folder,
        env=variables,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_control_c_keeps_what_is_done_and_its_command_resumes(environment_variables, tmp_path):
    arguments = [
        "run", "-e", "toy/slow_sums", "--backend", "scripted", "--set", "batch_size=1", "--log", "",
        "--set", "model.script=it is <answer>1</answer>",
    ]  # fmt: skip
    process = start(arguments, tmp_path, environment_variables)
    kept = tmp_path / "results" / "run" / "trajectories.jsonl"
    deadline = time.monotonic() + 60
    while not (kept.exists() and kept.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    number = kept.read_bytes().count(b"\n")
    assert 2 <= number < 10
    assert f"Stopped after {number} of 10 trajectories; they are kept in results/run." in err
    command = shlex.split(err.partition("Resume with: ")[2].splitlines()[0])
    resumed = subprocess.run(command, cwd=tmp_path, env=environment_variables, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert sorted(each["task_index"] for each in trajectories(tmp_path / "results" / "run")) == list(range(10))
    assert "10/10" in resumed.stdout
