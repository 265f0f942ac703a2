"""Plays recorded steps in a new interpreter, from their JSON alone.

Run as ``python -m llenvs.testing.second_process JOB ANSWER``: reads the job from one file, writes to the other.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llenvs.core.action import Action
from llenvs.core.encoding import dumps, loads
from llenvs.core.environment import Environment
from llenvs.core.errors import LLEnvsError
from llenvs.core.state import State
from llenvs.testing.subject import Step, Subject, Walk

_TIMEOUT = 300.0  # seconds; an upstream may take long to import


class SecondProcessFailed(LLEnvsError):
    """The second process died; the message holds the end of what it said."""


def replayed(
    subject: Subject, steps: Sequence[Step], walks: Sequence[Walk] | None = None
) -> tuple[list[str], list[str]]:
    """JSON of the first states of `walks` (None: the subject's) and of the results of `steps`, made elsewhere."""
    job = {
        "factory": subject.importable,
        "address": subject.address,
        "options": dumps(dict(subject.options or {})),
        "starts": [[walk.task_index, walk.seed] for walk in (subject.walks if walks is None else walks)],
        "steps": [[step.state.to_json(), dumps(step.action)] for step in steps],
    }
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    # what depends on the order of a set differs under another hash seed
    environment["PYTHONHASHSEED"] = "2" if environment.get("PYTHONHASHSEED") == "1" else "1"
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "job.json"), Path(folder, "answer.json")
        asked.write_text(json.dumps(job))
        command = [sys.executable, "-m", "llenvs.testing.second_process", str(asked), str(answered)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
        if done.returncode != 0:
            raise SecondProcessFailed(
                f"the second process ended with status {done.returncode}: {done.stderr.strip()[-1500:]}"
            )
        answer = json.loads(answered.read_text())
    return answer["starts"], answer["results"]


def main(asked: str, answered: str) -> None:
    """Do the job in the file `asked`, write the answer to the file `answered`."""
    job = json.loads(Path(asked).read_text())
    with _made(job) as env:
        starts = [
            env.reset(seed=seed, options={"task_index": index})[0].to_json() for index, seed in job["starts"]
        ]
        results = [dumps(env.step(State.from_json(s), _action(a))) for s, a in job["steps"]]
    Path(answered).write_text(json.dumps({"starts": starts, "results": results}))


def _made(job: dict[str, Any]) -> Environment[Any]:
    if job["factory"]:
        module, _, name = job["factory"].partition(":")
        made: Environment[Any] = getattr(importlib.import_module(module), name)()
        return made
    from llenvs.core.registry import make

    return make(job["address"], **loads(job["options"]))


def _action(text: str) -> Action:
    action = loads(text)
    assert isinstance(action, Action)  # written by `replayed`
    return action


if __name__ == "__main__":
    main(*sys.argv[1:])
