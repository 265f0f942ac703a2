"""What goes into a sandbox: the server, one adapter, and the Python that the adapter's metadata asks for."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from llenvs.core.errors import InvalidOption, UnknownAdapter
from llenvs.core.registry import CATALOGUE, ENTRY_POINT_GROUP, environment_registry

_FORMAT = 1
"""Part of the digest; to be counted up when sandboxes are made in another way."""


@dataclass(frozen=True, slots=True)
class Part:
    """A distribution in a sandbox.

    Attributes:
        name: of the distribution.
        folder: its source folder, installed editable; None for a release.
        requirement: what to install when there is no folder, e.g. ``llenvs-core==0.1.0``.
        extras: of the folder's project.
    """

    name: str
    folder: Path | None
    requirement: str
    extras: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """What ``uv pip install`` is given for it."""
        if self.folder is None:
            return [self.requirement]
        return ["--editable", f"{self.folder}{_bracketed(self.extras)}"]

    def __str__(self) -> str:
        return self.requirement if self.folder is None else f"{self.name}{_bracketed(self.extras)} (editable)"


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What a sandbox is made from; equal plans share one.

    Attributes:
        adapter: its name.
        parts: the core, the server, and the adapter, which is the last.
        packages: extra requirements; those that name a distribution override what the parts ask for.
        python: the version that was asked for ("3.12", or an interpreter's path); None for the adapter's choice.
        workspace: the workspace of the parts that are editable, whose ``[tool.uv]`` settings hold; None without.
        name: of the sandbox: the adapter and a digest of all that decides what is in it.
    """

    adapter: str
    parts: tuple[Part, ...]
    packages: tuple[str, ...]
    python: str | None
    workspace: Path | None
    name: str

    @property
    def overrides(self) -> list[str]:
        """Those of `packages` that name a distribution."""
        return [package for package in self.packages if _distribution_name(package) is not None]


def plan_sandbox(adapter: str, *, python: str | None = None, packages: Sequence[str] = ()) -> SandboxPlan:
    """Plan the sandbox of `adapter`.

    From a source checkout (the core is installed editable) it holds the workspace's own packages, editable; else
    the releases that are installed here, and of an adapter that is not, the one that fits them.

    Args:
        adapter: name of an adapter, of this project or installed here.
        python: version or path of the Python to use instead of what the adapter's metadata asks for.
        packages: extra requirements, e.g. ``["reasoning-gym==0.1.23"]``; paths of wheels and folders are allowed.

    Raises:
        UnknownAdapter, InvalidOption.
    """
    adapter = str(adapter).replace("-", "_")
    for i, package in enumerate(packages):
        if not package.strip() or package.lstrip().startswith("-"):
            raise InvalidOption(f"container.packages.{i}", package, "is no requirement", valid="name==version")
    workspace = _workspace()
    parts = (
        _part("llenvs-core", workspace, "core"),
        _part("llenvs-container", workspace, "container"),
        _adapter_part(adapter, workspace),
    )
    digest = _digest(parts, packages, python, workspace)
    return SandboxPlan(adapter, parts, tuple(packages), python, workspace, f"{adapter}-{digest[:12]}")


def _digest(parts: Sequence[Part], packages: Sequence[str], python: str | None, workspace: Path | None) -> str:
    content = {
        "format": _FORMAT,
        "platform": [sys.platform, platform.machine()],
        "parts": [[*part.arguments, {**_project(part.folder), "tool": None}] for part in parts],
        "packages": list(packages),
        # without a choice of the user the host's version is preferred, so it is part of the outcome
        "python": python or f"as declared, {sys.version_info.major}.{sys.version_info.minor} first",
        "uv": _project(workspace).get("tool", {}).get("uv"),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _adapter_part(adapter: str, workspace: Path | None) -> Part:
    if adapter in CATALOGUE:
        extra = CATALOGUE[adapter]
        name = f"llenvs-{extra}"
        return _part(name, workspace, f"packages/{extra}", _extras_of(name, extra, workspace))
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name.replace("-", "_") == adapter and point.dist is not None:
            return _part(point.dist.name, workspace, "")
    known = sorted({*environment_registry.adapters(), *CATALOGUE})
    raise UnknownAdapter(adapter, known, "list them with: llenvs list")


def _extras_of(name: str, extra: str, workspace: Path | None) -> tuple[str, ...]:
    """The extras of the distribution `name` that ``llenvs[extra]`` asks for: what a user gets, a sandbox gets."""
    if workspace is not None:
        wanted = _project(workspace).get("project", {}).get("optional-dependencies", {}).get(extra, [])
    else:
        try:
            wanted = distribution("llenvs").requires or []
        except PackageNotFoundError:
            wanted = []  # the core alone is installed
    for requirement in map(Requirement, wanted):
        if canonicalize_name(requirement.name) == canonicalize_name(name):
            return tuple(sorted(requirement.extras))
    return ()


def _part(name: str, workspace: Path | None, member: str, extras: tuple[str, ...] = ()) -> Part:
    asked = name + _bracketed(extras)
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        folder = workspace / member if workspace is not None and member else None
        found = folder if folder is not None and (folder / "pyproject.toml").exists() else None
        return Part(name, found, asked, extras)
    return Part(name, editable_folder(installed), f"{asked}=={installed.version}", extras)


def _bracketed(extras: Sequence[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def editable_folder(installed: Distribution) -> Path | None:
    """The source folder of an editable install; None for any other (``direct_url.json``, PEP 610)."""
    text = installed.read_text("direct_url.json")
    if text is None:
        return None
    found = json.loads(text)
    url = urlsplit(found.get("url", ""))
    if url.scheme != "file" or not found.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(url.path))


def _workspace() -> Path | None:
    """Root of the uv workspace that the core is installed from, if it is editable."""
    folder = editable_folder(distribution("llenvs-core"))
    for candidate in () if folder is None else folder.parents:
        if "workspace" in _project(candidate).get("tool", {}).get("uv", {}):
            return candidate
    return None


def _project(folder: Path | None) -> dict[str, Any]:
    """The ``pyproject.toml`` in `folder`, which decides what an editable install brings along; {} without."""
    try:
        text = "" if folder is None else (folder / "pyproject.toml").read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    return tomllib.loads(text)


def _distribution_name(requirement: str) -> str | None:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return None  # a path or a bare URL: installed, overrides nothing
