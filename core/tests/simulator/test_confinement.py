import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "attempt",
    [
        "open('created', 'w')",
        "open('created', 'ab')",
        "os.open('created', os.O_CREAT | os.O_WRONLY)",
        "os.mkdir('created')",
        "os.system('touch created')",
        "subprocess.run(['touch', 'created'])",
        "os.posix_spawn('/bin/sh', ['sh', '-c', 'touch created'], {})",
        "os.fork()",
        "socket.create_connection(('127.0.0.1', 9))",
        "bytearray(5 << 30)",
    ],
)
def test_a_confined_process_cannot_write_start_processes_or_use_the_network(attempt: str, tmp_path: Path) -> None:
    code = (
        "import os, socket, subprocess\n"
        "from llenvs.core.simulator.confinement import confine\n"
        f"confine()\ntry:\n    {attempt}\nexcept (PermissionError, MemoryError) as error:\n"
        "    print(type(error).__name__)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ("MemoryError" if "bytearray" in attempt else "PermissionError")
    assert not list(tmp_path.iterdir())
