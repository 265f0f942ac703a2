"""Memory of 100,000 single-turn tasks with a scripted backend, recorded on disk: peak and growth.

Target: under 500 MB and flat. The resident set is read from the system as trajectories end; "flat" compares its
mean over the last tenth of the run with that over the second tenth.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rollouts import SYSTEM_PROMPT, addition_environment, answer_to

from llenvs.evaluation import run_evaluation
from llenvs.inference import ScriptedBackend


def resident_megabytes() -> float:
    """Resident set now; where the system does not tell, the peak so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return peak_megabytes()


def peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="10,000 tasks")
    args = parser.parse_args()
    tasks = 10_000 if args.quick else args.tasks
    sizes: list[float] = []
    ended = 0

    def note(rollout: object) -> None:
        nonlocal ended
        ended += 1
        if ended % (tasks // 100) == 0:
            sizes.append(resident_megabytes())

    with tempfile.TemporaryDirectory() as folder:
        backend = ScriptedBackend(lambda request: answer_to(request.messages[-1].content))
        began = time.perf_counter()
        result = run_evaluation(
            addition_environment(tasks),
            backend,
            system_prompt=SYSTEM_PROMPT,
            output_dir=Path(folder) / "run",
            log=(),
            on_trajectory=note,
        )
        seconds = time.perf_counter() - began
        on_disk = (Path(folder) / "run" / "trajectories.jsonl").stat().st_size / 1e6
    assert result.complete
    early, late = statistics.fmean(sizes[10:20]), statistics.fmean(sizes[-10:])
    print(f"{tasks} tasks in {seconds:.1f} s ({tasks / seconds:.0f} a second), {on_disk:.0f} MB on disk")
    print(f"peak resident memory {peak_megabytes():.0f} MB")
    print(f"second tenth {early:.1f} MB, last tenth {late:.1f} MB: {late - early:+.1f} MB")


if __name__ == "__main__":
    main()
