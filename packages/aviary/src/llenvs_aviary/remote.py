"""Tasks of a running TaskDatasetServer of the upstream."""

from __future__ import annotations

import os
from typing import Any

from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs.core.simulator import Snapshots
from llenvs_aviary.custom import OpenTasks, dataset_tasks
from llenvs_aviary.options import RemoteOptions
from llenvs_aviary.upstream import load


class RemoteTasks(OpenTasks):
    """What the server serves. Its environments cannot be copied: older states are replayed to in a new one."""

    snapshots = Snapshots.NONE

    def __init__(self, options: RemoteOptions) -> None:
        url = options.server_url.rstrip("/")
        if not url.startswith(("http://", "https://")):
            valid = "such as http://127.0.0.1:8041"
            raise InvalidOption("server_url", options.server_url, "is no address of a server", valid=valid)
        key = os.environ.get(options.api_key_variable)
        try:
            data: Any = load().TaskDatasetClient(url, request_timeout=options.time_limit, api_key=key)
        except Exception as error:
            raise UpstreamFailed("aviary/remote", f"asking the server at {url} what it serves", error) from error
        super().__init__("aviary/remote", *dataset_tasks(data, options.size), options)
