"""Runs that are killed, interrupted or started twice, as processes of their own."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from llenvs.evaluation import read_trajectories

SCRIPT = Path(__file__).with_name("killable_run.py")
TASKS = 120

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def start(folder: Path, delay: float = 0.05) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), str(TASKS), str(delay)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(folder: Path) -> int:
    path = folder / "trajectories.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    while process.poll() is None and lines(folder) < count:
        time.sleep(0.002)


def results(folder: Path) -> dict[int, tuple[bool, float, str]]:
    found = [
        (r["task_index"], (r["success"], r["reward"], r["turns"][0]["response"]))
        for r in read_trajectories(folder)
    ]
    assert len(found) == len(dict(found)), "a trajectory is there twice"
    return dict(found)


def requests(folder: Path) -> Counter[str]:
    return Counter(Path(f"{folder}.requests").read_text().split())


def test_killed_at_random_moments_and_resumed(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    draw = random.Random(7)
    kills = 0
    for share in (0.0, 0.2, 0.5, 0.8):
        process = start(killed, 0.3)
        wait_for_lines(process, killed, lines(killed) + int(share * 40))
        time.sleep(draw.random() * 0.02)
        kills += process.poll() is None
        process.kill()
        process.communicate()
        assert not (killed / "summary.json").exists()
    assert kills == 4
    process = start(killed, 0.0)
    process.communicate(timeout=60)
    assert process.returncode == 0
    process = start(whole, 0.0)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert results(killed) == results(whole)
    assert len(results(killed)) == TASKS
    # paid for twice is at most what was in flight (8) at each of the four kills
    assert sum(requests(killed).values()) <= TASKS + 4 * 8
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (killed, whole)]
    for summary in summaries:
        assert summary["complete"]
        assert summary["environments"]["test/addition"]["success_rate"] == 0.75


def test_interrupted_and_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, 0.3)
    wait_for_lines(process, folder, 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = lines(folder)
    assert 20 <= kept < TASKS
    assert out == (
        f"stopped after {kept} of {TASKS} trajectories; they are kept in {folder}; "
        "run the same again to go on from there\n"
    )
    assert "Traceback" not in err
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["complete"], summary["num_done"]) == (False, kept)
    process = start(folder, 0.0)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"resuming: {kept} are done already" in err
    assert len(results(folder)) == TASKS
    assert json.loads((folder / "summary.json").read_text())["complete"]
    assert len(json.loads((folder / "versions.json").read_text())) == 2


def test_two_runs_cannot_have_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start(folder, 0.5)
    wait_for_lines(first, folder, 1)
    second = start(folder)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"another run is writing there (process {first.pid})" in err
    first.kill()
    first.communicate()
    third = start(folder, 0.0)  # the death of the first has released the folder
    third.communicate(timeout=60)
    assert third.returncode == 0
    assert len(results(folder)) == TASKS
