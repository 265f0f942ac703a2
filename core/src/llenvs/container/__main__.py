"""``python -m llenvs.container``: the server, when the distribution that holds it is installed."""

from __future__ import annotations

import sys

from llenvs.core.errors import NotInstalled


def main() -> int:
    """Hand over to `llenvs_container`."""
    try:
        from llenvs_container.main import main as serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "llenvs_container":
            raise
        print(NotInstalled("the server of isolated environments", "container"), file=sys.stderr)  # noqa: T201
        return 2
    return serve()


if __name__ == "__main__":
    sys.exit(main())
