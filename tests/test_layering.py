"""Arrows between the parts point one way (design, section 3)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "src" / "llenvs"

# part of core -> parts of core it may import
ALLOWED = {
    "core": {"core"},
    "inference": {"core", "inference"},
    "evaluation": {"core", "inference", "container", "evaluation"},
    "container": {"core", "container"},
    "integrations": {"core", "inference", "evaluation", "integrations"},
    "testing": {"core", "inference", "testing"},  # it tests environments and backends
}
# OpenRouter is OpenAI's API with more in it: its backend is a kind of OpenAIBackend, and its distribution depends
# on that of the other
STANDS_ON = {"llenvs_openrouter": "llenvs_openai"}


def _imports(path: Path) -> set[str]:
    """Modules of this project that `path` imports, also inside functions; not those for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for statement in branch.body
        for node in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.split(".")[0].startswith("llenvs")}


@pytest.mark.parametrize("part", sorted(p.name for p in CORE.iterdir() if p.is_dir() and p.name != "__pycache__"))
def test_core_imports_point_inwards(part: str) -> None:
    for path in (CORE / part).rglob("*.py"):
        for name in _imports(path):
            top, *rest = name.split(".")
            # `python -m llenvs.container` is another name of the server's own command
            if part == "container" and path.name == "__main__.py" and top == "llenvs_container":
                continue
            assert top == "llenvs", f"{path.relative_to(ROOT)} imports {name}: core never imports the other parts"
            # the registry may hand over to the container client when asked for an isolated environment
            if part == "core" and path.name == "registry.py" and rest[:1] == ["container"]:
                continue
            if rest:
                assert rest[0] in ALLOWED[part], f"{path.relative_to(ROOT)} imports {name}"


def test_adapters_and_backends_import_core_alone() -> None:
    for source in [*(ROOT / "packages").glob("*/src/*"), *(ROOT / "backends").glob("*/src/*")]:
        for path in source.rglob("*.py"):
            allowed = ("llenvs", source.name, STANDS_ON.get(source.name))
            foreign = {n for n in _imports(path) if n.split(".")[0] not in allowed}
            assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"
