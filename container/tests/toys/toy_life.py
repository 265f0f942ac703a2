"""An adapter whose environments live and die in difficult ways: what life cycles are tried on."""

import os
import subprocess
import sys
import time
from typing import Any

from pydantic import Field

from llenvs.core import (
    Adapter,
    Environment,
    EnvironmentInfo,
    EnvironmentSpec,
    Observation,
    RewardType,
    Signal,
    SingleTurnEnvironment,
    SingleTurnOptions,
    Start,
)
from llenvs.core.extraction import make_extractor


class LifeOptions(SingleTurnOptions):
    start_seconds: float = Field(default=0.0, description="How long it takes to build.")
    exit_status: int | None = Field(default=None, description="Leave the process while building.")
    daemons: int = Field(default=0, description="Processes to start that detach themselves.")
    close_seconds: float = Field(default=0.0, description="How long it takes to close.")


class Life(SingleTurnEnvironment[int]):
    """Asks for i + 1 and tells about the process that it lives in."""

    def __init__(self, options: LifeOptions) -> None:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            stream.write(f"building on {name}\n")
            stream.flush()
        time.sleep(options.start_seconds)
        if options.exit_status is not None:
            os._exit(options.exit_status)
        daemons = [_daemon() for _ in range(options.daemons)]
        self.close_seconds = options.close_seconds
        metadata = {"pid": os.getpid(), "daemons": daemons, "environ": dict(os.environ), "uid": os.getuid()}
        spec = EnvironmentSpec("life", "toy_life", success_signal="score", metadata=metadata)
        super().__init__(spec, make_extractor(options.answer_extractor))

    @property
    def num_tasks(self) -> int:
        return 5

    def _start(self, task_index: int, seed: int, options: Any) -> Start:
        return Start(Observation(prompt=f"What is {task_index} + 1?"), task_index + 1)

    def _score(self, hidden: int, answer: str | None) -> list[Signal]:
        return [Signal("score", RewardType.OUTCOME, float(answer == str(hidden)))]

    def close(self) -> None:
        time.sleep(self.close_seconds)


def _daemon() -> int:
    """A process in a session of its own whose parent is gone, as a terminal multiplexer makes them."""
    script = (
        "import os, sys, time\n"
        "os.setsid()\n"
        "pid = os.fork()\n"
        "if pid: print(pid, flush=True); os._exit(0)\n"
        "os.close(1); time.sleep(600)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


class LifeAdapter(Adapter):
    name = "toy_life"
    options = LifeOptions

    def list_environments(self) -> list[EnvironmentInfo]:
        return [EnvironmentInfo("life", "toy_life")]

    def create(self, name: str, options: Any) -> Environment[Any]:
        return Life(options)


ADAPTER = LifeAdapter()
