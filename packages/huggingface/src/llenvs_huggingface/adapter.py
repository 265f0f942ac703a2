"""The adapter: presets, any data set of the hub, local data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import UnknownEnvironment
from llenvs_huggingface.loading import LOCAL
from llenvs_huggingface.options import HuggingFaceOptions
from llenvs_huggingface.presets import PRESETS, Preset, find_preset

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class HuggingFaceAdapter(Adapter):
    """Questions and answers from data sets.

    A name is that of a preset ("gsm8k", or its repository "openai/gsm8k"), of any other repository of the hub
    ("owner/name"; the columns come from the options), or "dataset" for local data.
    """

    name = "huggingface"
    description = "Hugging Face: any data set with question and answer columns, from the hub or from local files"
    options = HuggingFaceOptions

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """The presets by category, and "dataset" for everything else; imports nothing of the upstream."""
        local = EnvironmentInfo(
            LOCAL, self.name, "local files, a directory or a list of dicts, by column names", "any data set"
        )
        return [*(self._info(preset.name, preset) for preset in PRESETS.values()), local]

    def info(self, name: str) -> EnvironmentInfo:
        """See `Adapter`; any ``owner/name`` is an environment."""
        preset = find_preset(name)
        if preset is not None:
            return self._info(preset.name, preset)
        if name == LOCAL:
            return self.list_environments()[-1]
        if _HUB_NAME.fullmatch(name):
            return EnvironmentInfo(name, self.name, f"data set {name} of the hub", "any data set")
        hint = (
            "a data set of the hub is given as huggingface/OWNER/NAME, local data as huggingface/dataset; "
            "list the presets with: llenvs list huggingface"
        )
        raise UnknownEnvironment(name, [*PRESETS, LOCAL], hint)

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment, UnknownOption, InvalidOption.
            DataUnavailable: the data are not here and cannot be reached.
            UpstreamFailed: the data cannot be read.
            NotInstalled: math-verify is missing and the scorer needs it.
        """
        from llenvs_huggingface.environment import HuggingFaceEnvironment

        entry = self.info(name)
        preset = find_preset(name)
        repository = preset.repository if preset is not None else entry.name
        return HuggingFaceEnvironment(entry.name, repository, preset, options)

    def _info(self, name: str, preset: Preset) -> EnvironmentInfo:
        metadata: dict[str, Any] = {"repository": preset.repository, "split": preset.split}
        for key in ("subset", "subsets", "size", "gated", "note"):
            value = getattr(preset, key)
            if value:
                metadata[key] = list(value) if isinstance(value, tuple) else value
        return EnvironmentInfo(name, self.name, preset.description, preset.category, metadata=metadata)


ADAPTER = HuggingFaceAdapter()
