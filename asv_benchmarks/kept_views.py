"""Times of views that begin with their state, and of views that are computed.

    python -m asv_benchmarks.kept_views

Each view is made in turn over the same file, five times; the least time counts, without that of the
tables.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from reactive import Database
from tests.engine.operators.test_operator_state import RELATIONS, Arc

TIMES = 5
CASES = (
    ("settled", 20_000, 3_000),
    ("rounds", 20_000, 3_000),
    ("closure", 3_000, 3_000),
    ("closure of some", 6_000, 3_000),
    ("rules", 1_500, 900),
    ("closure of a closure", 1_000, 900),
    ("shortest ways", 1_500, 600),
    ("sums", 100_000, 20_000),
    ("sums of a join", 20_000, 5_000),
    ("union", 50_000, 20_000),
)
"""The name of a query, and how many arcs between how many nodes."""


def made(path: Path, name: str, *, kept: bool) -> tuple[float, str]:
    """Return the seconds to make a view, and the origin of its state."""
    with Database(path) as db:
        arcs = db.table(Arc, name="arcs")
        start = perf_counter()
        view = RELATIONS[name](arcs).materialize("top", kept=kept)
        seconds = perf_counter() - start
        state = view.kept_state()
        return seconds, "" if state is None else f"{state.state}, {state.bytes} bytes {state.why}"


def main() -> None:
    for name, count, nodes in CASES:
        random = Random(1)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "a.db"
            with Database(path) as db:
                rows = {Arc(random.randrange(nodes), random.randrange(nodes)) for _ in range(count)}
                db.table(Arc, name="arcs").add_all(rows)
            made(path, name, kept=True)
            read = min(made(path, name, kept=True) for _ in range(TIMES))
            computed = min(made(path, name, kept=False) for _ in range(TIMES))
        ratio = read[0] / computed[0]
        print(
            f"{name:20} {computed[0] * 1e3:8.1f} ms {read[0] * 1e3:8.1f} ms {ratio:6.2f}  {read[1]}"
        )


if __name__ == "__main__":
    main()
