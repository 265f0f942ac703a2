"""The tasks of an environment: rows of its data set, each with the environment that plays it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import verifiers.legacy as vf

from llenvs_verifiers.options import VerifiersOptions
from llenvs_verifiers.quiet import kept_in


class Tasks:
    """Rows of the upstream's data set by task index, in the order that the options give.

    Args:
        env: the upstream's environment, maybe a group.
        options: split, size and seed.
    """

    def __init__(self, env: Any, options: VerifiersOptions) -> None:
        self.env = env
        with kept_in():  # a data set may be made at its first use
            get = (
                env.get_dataset
                if options.split == "train" or env.build_eval_dataset() is None
                else env.get_eval_dataset
            )
            self._rows = get(n=options.size or -1, seed=options.seed)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> dict[str, Any]:
        """The row as the data set has it."""
        with self._lock:
            return dict(self._rows[index])

    def __getitem__(self, index: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """The environment that plays the task, the row as that environment wants it, and an info."""
        env, row = self.env, self.row(index)
        info: dict[str, Any] = {"example_id": row.get("example_id")}
        route: list[str] = []
        while isinstance(env, vf.EnvGroup):
            name, child, _ = env._route_child_input(row)
            route.append(name)
            env, row = env.get_env_for_name(name), dict(child)
        if route:
            info["env_id"] = "/".join(route)
        return env, row, info

    @property
    def has_images(self) -> bool:
        """Whether the first task shows an image."""
        prompt = self.row(0).get("prompt") if len(self) else None
        return isinstance(prompt, list) and any("image_url" in str(message.get("content")) for message in prompt)

    def own_tools(self) -> list[Any]:
        """Tools that rows bring along themselves, as the upstream has them."""
        first = self.row(0).get("info") if len(self) else None
        if not isinstance(first, Mapping | str) or "tool_defs" not in first:
            return []
        from json import loads

        infos = (self.row(index)["info"] for index in range(len(self)))
        parsed = (loads(info) if isinstance(info, str) else info for info in infos)
        raw = [tool for info in parsed for tool in info.get("tool_defs") or ()]
        return vf.Environment._normalize_tool_defs(raw) or []
