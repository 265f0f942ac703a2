"""Figures about the server in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Mapping

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the duration histogram, seconds."""


class Metrics:
    """Counts requests and how long they took, from receipt to answer. For one event loop."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()

    def count(self, operation: str, outcome: str, seconds: float) -> None:
        """One request ended; `outcome` is "ok" or the name of the error."""
        self._requests[operation, outcome] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment]
        place = bisect.bisect_left(BUCKETS, seconds)
        if place < len(BUCKETS):
            self._buckets[operation, BUCKETS[place]] += 1

    def render(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All figures; `gauges`: name -> (what it is, its value now)."""
        return "\n".join([*self._counters(), *self._gauges(gauges)]) + "\n"

    def _counters(self) -> Iterator[str]:
        yield "# HELP llenvs_requests_total Requests answered."
        yield "# TYPE llenvs_requests_total counter"
        for (operation, outcome), count in sorted(self._requests.items()):
            yield f'llenvs_requests_total{{operation="{operation}",outcome="{outcome}"}} {count}'
        yield "# HELP llenvs_request_duration_seconds From receipt to answer, the wait in the queue included."
        yield "# TYPE llenvs_request_duration_seconds histogram"
        for operation in sorted(self._seconds):
            total = 0
            for bound in BUCKETS:
                total += self._buckets[operation, bound]
                yield f'llenvs_request_duration_seconds_bucket{{operation="{operation}",le="{bound:g}"}} {total}'
            count = sum(n for (name, _), n in self._requests.items() if name == operation)
            yield f'llenvs_request_duration_seconds_bucket{{operation="{operation}",le="+Inf"}} {count}'
            yield f'llenvs_request_duration_seconds_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}'
            yield f'llenvs_request_duration_seconds_count{{operation="{operation}"}} {count}'

    @staticmethod
    def _gauges(gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        for name, (help_text, value) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            yield f"# HELP llenvs_{name} {help_text}"
            yield f"# TYPE llenvs_{name} {kind}"
            yield f"llenvs_{name} {value:g}"
