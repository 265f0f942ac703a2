"""The adapter: what GEM has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llenvs.core.adapter import Adapter, EnvironmentInfo
from llenvs.core.environment import Environment
from llenvs.core.errors import UpstreamFailed
from llenvs.core.options import EnvironmentOptions
from llenvs_gem.catalogue import COMPOSITE, ENTRIES, UPSTREAM_RELEASE, Entry, Kind, Needs, find
from llenvs_gem.options import (
    CodeOptions,
    DatasetOptions,
    GameOptions,
    ImageDatasetOptions,
    ReasoningOptions,
    WordGameOptions,
)


class GemAdapter(Adapter):
    """The 172 ids of GEM's registry, and the names that others give to them."""

    name = "gem"
    description = "GEM: text games, maths, code, question answering and logic, with tools"

    def list_environments(self) -> Sequence[EnvironmentInfo]:
        """All ids, games first; `metadata["needs"]` says what each needs. Imports nothing of the upstream."""
        return [_info(entry) for entry in ENTRIES.values()]

    def info(self, name: str) -> EnvironmentInfo:
        """The list entry of an id or of another name for it (see `catalogue.find`)."""
        return _info(find(name))

    def options_for(self, name: str) -> type[EnvironmentOptions]:
        """Those of its kind of environment."""
        entry = find(name)
        if entry.kind is Kind.GAME:
            return WordGameOptions if entry.needs is Needs.CORPUS else GameOptions
        if entry.kind is Kind.REASONING:
            return ReasoningOptions
        if entry.kind is Kind.CODE:
            return CodeOptions
        return ImageDatasetOptions if "image_key" in entry.settings else DatasetOptions

    def create(self, name: str, options: Any) -> Environment[Any]:
        """See `Adapter`.

        Raises:
            UnknownEnvironment: with the nearest ids.
            UpstreamFailed: an id that is broken in the upstream and cannot be mended here.
            CorpusMissing: a game of words without its corpus.
        """
        entry = find(name)
        if entry.id == COMPOSITE:
            said = f"{entry.note}; reasoning_gym/composite of llenvs-reasoning-gym takes them as options"
            raise UpstreamFailed(f"gem/{entry.id}", "making it", said)
        if entry.kind is Kind.GAME and options.tool_types:
            from llenvs_gem.tool_game_environment import GemToolGameEnvironment

            return GemToolGameEnvironment(entry, options)
        if entry.kind is Kind.GAME:
            from llenvs_gem.game_environment import GemGameEnvironment

            return GemGameEnvironment(entry, options)
        if options.tool_types:
            from llenvs_gem.tool_environment import GemToolEnvironment

            return GemToolEnvironment(entry, options)
        from llenvs_gem.question_environment import GemQuestionEnvironment

        return GemQuestionEnvironment(entry, options)


def _info(entry: Entry) -> EnvironmentInfo:
    metadata: dict[str, Any] = {"gem": UPSTREAM_RELEASE, "needs": str(entry.needs)}
    if entry.note:
        metadata["note"] = entry.note
    description = entry.description if entry.needs is Needs.NOTHING else f"{entry.description} [{entry.needs}]"
    return EnvironmentInfo(
        entry.id, "gem", description, entry.category, is_multi_turn=entry.kind is Kind.GAME, metadata=metadata
    )


ADAPTER = GemAdapter()
