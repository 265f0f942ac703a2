from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llenvs.core.errors import InvalidOption, NotInstalled
from llenvs.evaluation import run_evaluation
from llenvs.evaluation.loggers import LOGGERS, Progress, RunLogger, UnknownLogger, make_loggers
from llenvs.evaluation.loggers.console import ConsoleLogger, figures_text
from llenvs.evaluation.loggers.file import FileLogger
from llenvs.evaluation.loggers.wandb import WandbUnavailable
from llenvs.inference.errors import ContextOverflow


def test_names() -> None:
    assert LOGGERS == ("console", "file", "wandb")
    assert [type(each) for each in make_loggers("console, file")] == [ConsoleLogger, FileLogger]
    own = RunLogger()
    assert make_loggers([own]) == [own]
    assert make_loggers(None) == make_loggers("") == []
    with pytest.raises(UnknownLogger, match="did you mean 'console'"):
        make_loggers("consle")


def test_progress() -> None:
    progress = Progress(40, 100, 4, 36, 18, 0.5, session_done=20, session_tokens=500, seconds=10.0)
    assert (progress.success_rate, progress.tokens_per_second, progress.seconds_left) == (0.5, 50.0, 30.0)
    assert figures_text(progress) == "success 50.0%  errors 4  50 tok/s  30.0 s left"
    assert Progress(0, 10).seconds_left is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_file_gets_lines(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    file = io.StringIO()
    fail = {each: ContextOverflow("scripted", "too long") for each in (3, 4)}
    run_evaluation(
        addition(), scripted(recorder(fail=fail), max_concurrency=1), output_dir=tmp_path,
        log=[ConsoleLogger(file, interval=0.0)],
    )  # fmt: skip
    lines = file.getvalue().splitlines()
    assert lines[0] == "scripted on test/addition: 10 trajectories"
    assert "1/10  success 100.0%  errors 0" in lines[1]
    # the same error is told once
    assert [line for line in lines if "error in" in line] == [
        "error in task 3: ContextOverflow: scripted: too long"
    ]
    assert lines[-1].startswith("10/10 done in ")
    assert lines[-1].endswith(f", 2 errors; kept in {tmp_path}")
    assert "\x1b" not in file.getvalue()


def test_few_lines_for_many_trajectories(addition: Any, recorder: Any, scripted: Any) -> None:
    file = io.StringIO()
    run_evaluation(addition(500), scripted(recorder()), log=[ConsoleLogger(file, interval=3600)])
    assert len(file.getvalue().splitlines()) == 2


def test_a_terminal_gets_a_bar(
    addition: Any, recorder: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    file = Terminal()
    run_evaluation(addition(), scripted(recorder(wrong=[0])), log=[ConsoleLogger(file)])
    text = file.getvalue()
    assert "\x1b[" in text
    assert "10/10" in text
    assert "success 90.0%" in text
    assert "tok/s" in text


def test_console_goes_to_standard_error(
    addition: Any, recorder: Any, scripted: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    run_evaluation(addition(), scripted(recorder()))
    out, err = capfd.readouterr()
    assert out == ""
    assert "10/10 done" in err


def test_the_file_logger(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    fail = {3: ContextOverflow("scripted", "too long")}
    run_evaluation(addition(), scripted(recorder(fail=fail)), output_dir=tmp_path, log="file")
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["started", *["trajectory"] * 10, "finished"]
    assert (events[0]["total"], events[0]["environments"]) == (10, ["test/addition"])
    assert events[0]["config"]["seed"] == 0
    (broken,) = [event for event in events if event.get("error")]
    assert (broken["task_index"], broken["error"]) == (3, "ContextOverflow: scripted: too long")
    assert events[-2]["done"] == 10
    assert events[-1]["result"]["environments"]["test/addition"]["num_errors"] == 1


def test_the_file_logger_needs_a_place(addition: Any, recorder: Any, scripted: Any, tmp_path: Path) -> None:
    script = recorder()
    with pytest.raises(InvalidOption, match="output_dir"):
        run_evaluation(addition(), scripted(script), log="file")
    assert script.requests == []
    run_evaluation(addition(), scripted(script), log=[FileLogger(tmp_path / "logs" / "e.jsonl")])
    assert (tmp_path / "logs" / "e.jsonl").read_text().count("\n") == 12


def test_a_logger_that_fails_is_left_out(addition: Any, recorder: Any, scripted: Any) -> None:
    class Broken(RunLogger):
        calls = 0

        def trajectory(self, report: Any, progress: Any) -> None:
            self.calls += 1
            raise OSError("no network")

    broken, file = Broken(), io.StringIO()
    with pytest.warns(UserWarning, match="Broken failed and is left out: no network"):
        result = run_evaluation(addition(), scripted(recorder()), log=[broken, ConsoleLogger(file)])
    assert (broken.calls, result.num_done) == (1, 10)
    assert "10/10 done" in file.getvalue()


def test_without_wandb_the_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(NotInstalled, match=r'pip install "llenvs\[wandb\]"'):
        make_loggers("wandb")


def test_wandb_offline(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    from llenvs.evaluation.loggers.wandb import WandbLogger

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    logger = WandbLogger(project="test", interval=0.0)
    kept: dict[str, Any] = {}

    class Kept(RunLogger):
        def finish(self, result: Any) -> None:
            kept["summary"] = dict(logger._run.summary)
            kept["config"] = dict(logger._run.config)

    run_evaluation(
        addition(), scripted(recorder(wrong=[0, 1])), seed=4, output_dir=tmp_path / "run", log=[logger, Kept()]
    )
    assert kept["summary"]["test/addition/success_rate"] == 0.8
    assert kept["summary"]["done"] == 10
    assert kept["summary"]["complete"] is True
    assert kept["config"]["seed"] == 4
    (written,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert written.stat().st_size > 0


def test_wandb_without_a_key_is_said_before_anything_runs(tmp_path: Path) -> None:
    """In a process of its own, since wandb remembers the mode of its first run."""
    pytest.importorskip("wandb")
    code = """
from llenvs.core.errors import LLEnvsError
from llenvs.evaluation.loggers import RunStart
from llenvs.evaluation.loggers.wandb import WandbLogger

try:
    WandbLogger().start(RunStart(("a",), "m", 1, 0, None, {}))
except LLEnvsError as error:
    print(error)
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    environment |= {"HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, input=""
    )
    assert re.search(r"wandb cannot begin a run: No API key.*WANDB_MODE=offline", done.stdout), done.stderr


class Refusing(RunLogger):
    def start(self, run: Any) -> None:
        raise WandbUnavailable("no key")


def test_a_logger_that_refuses_at_the_start_stops_the_run_before_it_is_paid_for(
    addition: Any, recorder: Any, scripted: Any, tmp_path: Path
) -> None:
    script = recorder()
    with pytest.raises(WandbUnavailable, match="no key"):
        run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=[Refusing()])
    assert not script.requests
    assert run_evaluation(addition(), scripted(script), output_dir=tmp_path, log=()).complete
