"""Start-up: `import llenvs` and `llenvs --help` beside `from pydantic import BaseModel`, in fresh processes.

Targets: at most 1.8 x and 3 x. The commands alternate, so that a busy machine slows all of them; the medians
are compared, and the interpreter's own start (`python -c pass`) is part of each figure.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

HEAVY = ["torch", "datasets", "sympy", "matplotlib", "numpy", "httpx", "openai", "xllamacpp"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    args = parser.parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "from pydantic import BaseModel": [sys.executable, "-c", "from pydantic import BaseModel"],
        "import llenvs": [sys.executable, "-c", "import llenvs"],
        "import llenvs.core": [sys.executable, "-c", "import llenvs.core"],
        "llenvs --help": [str(Path(sys.executable).with_name("llenvs")), "--help"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(1 + (3 if args.quick else args.rounds)):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(values[1:]) for name, values in seconds.items()}  # the first warms up
    base = medians["from pydantic import BaseModel"]
    for name, median in medians.items():
        print(f"{name:32} {1000 * median:7.1f} ms   {median / base:5.2f} x pydantic")
    probe = f"import sys, llenvs; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)
    print(f"heavy modules after `import llenvs`: {loaded.stdout.strip()}")


if __name__ == "__main__":
    main()
