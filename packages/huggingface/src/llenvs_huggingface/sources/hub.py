"""Data sets of the hub: the snapshot and the prepared copy that are here, and the network.

Without a network, declared (``HF_HUB_OFFLINE=1``, ``offline=True``) or found out by one request, nothing is asked
of it again: `datasets` alone would try for some 24 seconds.
"""

from __future__ import annotations

import os
import re
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs_huggingface.sources.errors import DataUnavailable
from llenvs_huggingface.sources.local import load_directory, split_there
from llenvs_huggingface.sources.plain import plain_table
from llenvs_huggingface.sources.preparation import explained, loading, prepared_folder
from llenvs_huggingface.sources.quiet import quiet
from llenvs_huggingface.sources.rows import Origin, Rows, TableRows

REQUEST_LIMIT = 10.0
"""Seconds for the one request that finds out whether the hub can be reached."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def load_hub(
    repository: str,
    subset: str | None,
    split: str | None,
    *,
    revision: str | None = None,
    cache_dir: str | None = None,
    offline: bool | None = None,
) -> Rows:
    """Rows of a data set of the hub.

    Args:
        repository: ``owner/name``.
        subset: None where there is one alone.
        split: None for the only one, or "test"; may be a slice such as ``train[:100]``.
        revision: branch, tag or commit; None for the main branch.
        cache_dir: folder with the hub's snapshots (``datasets--owner--name``); None for ``HF_HUB_CACHE``.
        offline: True never asks the network, False always does; None follows ``HF_HUB_OFFLINE`` and its like.

    Raises:
        DataUnavailable: it is not here and cannot be reached, is not there, or asks for a login.
        InvalidOption: no such subset, split or revision; names those that are.
        UpstreamFailed: the data cannot be read.
    """
    tried: list[str] = []
    declared = is_offline() if offline is None else offline
    if not declared:
        commit, problem = _commit_there(repository, revision)
        if commit is not None:
            return _from_network(repository, subset, split, commit)
        tried.append(f"the network ({problem})")
    rows = _from_snapshot(repository, subset, split, revision, cache_dir, tried)
    if rows is None:
        rows = _from_prepared(repository, subset, split, revision, tried)
    if rows is not None:
        return rows
    if declared:
        tried.append("not the network, since offline is set")
    named = f" --revision {revision}" if revision else ""
    hint = (
        f"With a network run: hf download --repo-type dataset {repository}{named}; "
        "or give the data themselves: data_files=..., data_dir=... or data=[...]"
    )
    raise DataUnavailable(repository, tried, hint)


def is_offline() -> bool:
    """Whether the user's environment variables forbid the network.

    `huggingface_hub` read its own at import; HF_DATASETS_OFFLINE, where it is set, overrules them as in
    `datasets`.
    """
    said = os.environ.get("HF_DATASETS_OFFLINE")
    if said is not None:
        return said.upper() in ("1", "ON", "YES", "TRUE")
    from huggingface_hub.constants import HF_HUB_OFFLINE

    return bool(HF_HUB_OFFLINE)


def _commit_there(repository: str, revision: str | None) -> tuple[str | None, str]:
    """The commit that the hub has now, or None and why it could not be asked: one request, not repeated."""
    with quiet():
        from huggingface_hub import HfApi
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            HFValidationError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        try:
            info = HfApi().dataset_info(repository, revision=revision, timeout=REQUEST_LIMIT)
            return info.sha, ""
        except GatedRepoError:
            raise DataUnavailable(repository, ["the hub, which asks for a login"], _gate(repository)) from None
        except RepositoryNotFoundError:
            hint = "Check the name; a private one needs HF_TOKEN or: hf auth login"
            raise DataUnavailable(repository, ["the hub, which has no such data set"], hint) from None
        except RevisionNotFoundError:
            raise InvalidOption("revision", revision, f"{repository} has no such revision") from None
        except HFValidationError as error:
            raise InvalidOption("name", repository, f"is no hub name ({error})") from None
        except HfHubHTTPError as error:
            return None, str(error).splitlines()[0][:200]
        except Exception as error:  # noqa: BLE001 - whatever the HTTP library in use raises without a connection
            return None, f"{type(error).__name__}: {error}"[:200]


def _gate(repository: str) -> str:
    terms = f"https://huggingface.co/datasets/{repository}"
    return f"Accept its terms at {terms}, then set HF_TOKEN or run: hf auth login"


def _from_network(repository: str, subset: str | None, split: str | None, commit: str) -> Rows:
    with quiet() as datasets:
        folder = prepared_folder(datasets)
        builder = loading(
            repository,
            subset,
            split,
            lambda: datasets.load_dataset_builder(repository, subset, revision=commit, cache_dir=folder),
        )
        loading(repository, subset, split, builder.download_and_prepare)
        wanted = split_there(split, list(builder.info.splits or {}), True, repository)
        dataset = loading(repository, subset, wanted, lambda: builder.as_dataset(split=wanted))
    return TableRows(dataset, Origin(repository, builder.config.name, wanted, commit))


def _from_snapshot(
    repository: str,
    subset: str | None,
    split: str | None,
    revision: str | None,
    cache_dir: str | None,
    tried: list[str],
) -> Rows | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    folder = os.path.expanduser(cache_dir or HF_HUB_CACHE)
    try:
        path = snapshot_download(
            repository, repo_type="dataset", revision=revision, cache_dir=folder, local_files_only=True
        )
    except LocalEntryNotFoundError:
        tried.append(f"the hub cache {folder}" + (f" for revision {revision}" if revision else ""))
        return None
    except HFValidationError as error:
        raise InvalidOption("name", repository, f"is no hub name ({error})") from None
    origin = Origin(repository, subset, split, os.path.basename(path))
    plain = plain_table(path, subset, split)
    if plain is not None:
        table, found_subset, found_split = plain
        return TableRows(table, origin._replace(subset=found_subset, split=found_split))
    return load_directory(path, subset, split, origin=origin)


def _from_prepared(
    repository: str, subset: str | None, split: str | None, revision: str | None, tried: list[str]
) -> Rows | None:
    """What an earlier `load_dataset` prepared; its folder's name tells the commit, which must be the wanted
    one.
    """
    with quiet() as datasets:
        from datasets.packaged_modules.cache.cache import Cache

        place = f"prepared copies in {datasets.config.HF_DATASETS_CACHE}"
        try:
            builder: Any = Cache(
                repo_id=repository,
                dataset_name=repository.rpartition("/")[2],
                config_name=subset,
                version="auto",
                hash="auto",
            )
        except ValueError as error:
            if "vailable configs" in str(error) or "multiple" in str(error):
                raise explained(repository, subset, split, error) from None
            tried.append(place)
            return None
        if revision is not None and _COMMIT.fullmatch(revision) and builder.hash != revision:
            tried.append(f"{place} (there is only commit {builder.hash})")
            return None
        wanted = split_there(split, list(builder.info.splits or {}), True, repository)
        dataset = loading(repository, subset, wanted, lambda: builder.as_dataset(split=wanted))
    return TableRows(dataset, Origin(repository, builder.config.name, wanted, builder.hash))
