"""From a name and options to rows."""

from __future__ import annotations

from collections.abc import Sequence

from llenvs.core.errors import InvalidOption
from llenvs_huggingface.options import HuggingFaceOptions
from llenvs_huggingface.presets import Preset
from llenvs_huggingface.sources.hub import load_hub
from llenvs_huggingface.sources.local import load_directory, load_files, subsets_of
from llenvs_huggingface.sources.rows import JoinedRows, ListRows, Origin, Rows, selected

LOCAL = "dataset"
"""Name of the environment without a hub repository."""


def load_rows(name: str, preset: Preset | None, options: HuggingFaceOptions) -> Rows:
    """The rows that the options choose, in the order of the tasks.

    Args:
        name: a hub repository, or `LOCAL`.
        preset: what is known of it; its subset and split are used where the options give none.
        options: of the environment.

    Raises:
        InvalidOption: options contradict each other, or name what is not there.
        DataUnavailable, UpstreamFailed: the data cannot be had, or read.
    """
    rows = _all_rows(name, preset, options)
    if len(rows) == 0:
        raise InvalidOption("split", options.split, f"{rows_name(name, preset)} has no rows there")
    return selected(rows, options.size, options.seed)


def rows_name(name: str, preset: Preset | None) -> str:
    """What errors call the data set."""
    return name if preset is None else preset.name


def _all_rows(name: str, preset: Preset | None, options: HuggingFaceOptions) -> Rows:
    local = [key for key in ("data", "data_files", "data_dir") if getattr(options, key) is not None]
    if len(local) > 1:
        raise InvalidOption(local[1], getattr(options, local[1]), f"does not go with {local[0]}: give one of them")
    if not local and name == LOCAL:
        raise InvalidOption("data", None, "huggingface/dataset needs data, data_files or data_dir")
    for key in ("revision", "cache_dir") if local else ():
        if getattr(options, key) is not None:
            raise InvalidOption(key, getattr(options, key), f"is for the hub and does not go with {local[0]}")
    if options.field is not None and local != ["data_files"]:
        raise InvalidOption("field", options.field, "is for JSON files given as data_files")
    if local and local != ["data_dir"] and options.subset is not None:
        raise InvalidOption("subset", options.subset, f"does not go with {local[0]}")
    if local == ["data"]:
        return _listed(options)
    if local == ["data_files"]:
        assert options.data_files is not None
        return load_files(options.data_files, options.split, options.field)
    subsets = _subsets(preset, options)
    split = options.split or (preset.split if preset else None)
    if local:
        return _from_directory(str(options.data_dir), subsets, split, options)
    repository = preset.repository if preset else name
    parts = [
        load_hub(
            repository,
            subset,
            split,
            revision=options.revision,
            cache_dir=options.cache_dir,
            offline=options.offline,
        )
        for subset in subsets
    ]
    return parts[0] if len(parts) == 1 else JoinedRows(parts)


def _subsets(preset: Preset | None, options: HuggingFaceOptions) -> Sequence[str | None]:
    if options.subset is not None:
        named = [options.subset] if isinstance(options.subset, str) else options.subset
        if not named:
            raise InvalidOption("subset", options.subset, "names none")
        return named
    if preset is None:
        return [None]
    return preset.subsets or [preset.subset]


def _from_directory(
    data_dir: str, subsets: Sequence[str | None], split: str | None, options: HuggingFaceOptions
) -> Rows:
    """A directory may lack the preset's own subset or split, when it holds just one: what is there stands in."""
    if options.subset is None and len(subsets) > 1 and not set(subsets) <= set(subsets_of(data_dir)):
        subsets = [None]
    parts = [
        load_directory(
            data_dir,
            subset,
            split,
            exact_subset=options.subset is not None,
            exact_split=options.split is not None,
        )
        for subset in subsets
    ]
    return parts[0] if len(parts) == 1 else JoinedRows(parts)


def _listed(options: HuggingFaceOptions) -> Rows:
    data = options.data
    if not isinstance(data, list | tuple) or not data:
        raise InvalidOption("data", data, "must be a list of dicts that is not empty")
    if options.split is not None:
        raise InvalidOption("split", options.split, "does not go with data")
    return ListRows(data, Origin("rows"))
