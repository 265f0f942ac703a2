"""What happens to the process around the engine: import, Ctrl-C, exit, fork, a missing library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENDLESS = 'SamplingParams(temperature=0.0, max_tokens=1900, extra={"ignore_eos": True})'
HEAD = """
import sys, threading, time, os
from llenvs.inference import SamplingParams
from llenvs_llamacpp import LlamaCppBackend
backend = LlamaCppBackend(sys.argv[1], n_ctx=2048, slots=1)
"""


def python(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def test_import_is_light() -> None:
    done = python(
        "import sys, llenvs_llamacpp; llenvs_llamacpp.LlamaCppBackend();"
        "print([m for m in ('xllamacpp', 'httpx', 'numpy', 'platformdirs', 'openai') if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_missing_system_library_names_the_package(tmp_path: Path, model_path: Path) -> None:
    # the loader takes this broken file for the library, as it would find none on a slim system
    (tmp_path / "libgomp.so.1").write_bytes(b"")
    code = (
        HEAD + "try:\n    backend.chat('hi')\nexcept Exception as error:\n    print(type(error).__name__, error)"
    )
    done = python(code, model_path, LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.startswith("EngineUnavailable llamacpp: llama.cpp needs the system library libgomp")
    assert "apt-get install libgomp1" in done.stdout


def test_ctrl_c_ends_a_generation(model_path: Path) -> None:
    code = HEAD + (
        "backend.base_url; print('go', flush=True)\n"
        f"try:\n    backend.chat('Tell me a long story.', {ENDLESS})\n"
        "except KeyboardInterrupt:\n"
        "    import httpx\n"
        "    headers = {'Authorization': f'Bearer {backend.api_key}'}\n"
        "    for _ in range(200):\n"
        "        slots = httpx.get(f'{backend.server.url}/slots', headers=headers, trust_env=False).json()\n"
        "        if not slots[0]['is_processing']: break\n"
        "        time.sleep(0.02)\n"
        "    print('stopped', slots[0]['is_processing'], flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(model_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "go\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert out == "stopped False\n", err
    assert child.returncode == 0, err


def test_exit_while_a_request_is_under_way(model_path: Path) -> None:
    # the engine's own end would wait for the request
    code = HEAD + (
        "backend.base_url\n"
        f"def ask():\n    try:\n        backend.chat('Tell me a long story.', {ENDLESS})\n"
        "    except Exception as error:\n        print(type(error).__name__, flush=True)\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        "time.sleep(1.0)\nprint('leaving', flush=True)\n"
    )
    done = python(code, model_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "leaving"
    assert done.stderr == ""


def test_exit_without_closing_is_silent(model_path: Path) -> None:
    done = python(
        HEAD + "print(backend.chat('Hi', SamplingParams(temperature=0.0, max_tokens=1)).text)", model_path
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_after_async_calls_alone_is_silent(model_path: Path) -> None:
    # the shared loop was never started, and no thread can be any more
    code = HEAD + (
        "import asyncio\n"
        "print(asyncio.run(backend.achat('Hi', SamplingParams(temperature=0.0, max_tokens=1))).text)"
    )
    done = python(code, model_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_worker_starts_an_engine_of_its_own(model_path: Path) -> None:
    code = HEAD + (
        "import multiprocessing\n"
        "short = SamplingParams(temperature=0.0, max_tokens=4)\n"
        "def ask():\n    return backend.chat('What is the capital of France?', short).text\n"
        "def work(answers):\n    answers.put((ask(), backend.base_url))\n"
        "first = ask()\n"
        "context = multiprocessing.get_context('fork')\n"
        "answers = context.Queue()\n"
        "workers = [context.Process(target=work, args=(answers,)), context.Process(target=int)]\n"
        "for worker in workers: worker.start()\n"
        "text, url = answers.get(timeout=60)\n"
        "for worker in workers: worker.join(60)\n"
        "print(text == first == ask(), url != backend.base_url, [worker.exitcode for worker in workers])\n"
    )
    done = python(code, model_path, PYTHONWARNINGS="ignore::DeprecationWarning")
    assert done.stdout == "True True [0, 0]\n", done.stderr
    assert done.returncode == 0


def test_a_proxy_setting_is_not_asked(model_path: Path) -> None:
    code = (
        HEAD
        + "print(backend.chat('What is the capital of France?', SamplingParams(temperature=0, max_tokens=1)).text)"
    )
    dead = "http://127.0.0.1:9"
    done = python(code, model_path, HTTP_PROXY=dead, http_proxy=dead, ALL_PROXY=dead)
    assert done.stdout.strip() == "L", done.stderr
