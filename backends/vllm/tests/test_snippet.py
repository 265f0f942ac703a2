"""The README's own lines, with a model that is here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_readme(model_folder: Path, tmp_path: Path) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert "Qwen/Qwen2.5-0.5B-Instruct" in code
    program = tmp_path / "program.py"
    program.write_text(code.replace("Qwen/Qwen2.5-0.5B-Instruct", str(model_folder)), encoding="utf-8")
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=290, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("{", "["))]
    assert '"city"' in done.stdout
    assert "To find 7 times 8" in lines[-1]
    assert "Traceback" not in done.stderr  # also at the interpreter's end
