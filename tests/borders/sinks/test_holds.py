"""Files of state tables exist while a reader holds them, and no longer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyarrow import fs

from spark_backend.state import manifest
from spark_backend.state.manifest import Hold, Holds, Manifest, Segment
from tests.budget import seeds

ROWS = 10


class Tables:
    """Two tables whose flushes are folders, and are put together."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest = Manifest("plan", 0)
        self.holds = Holds(fs.LocalFileSystem(), str(root), self.manifest)

    def flush(self, *tables: str) -> None:
        number = (self.manifest.number or 0) + 1
        added = {name: self._segment(f"flush/{number:012}-a/t={name}") for name in tables}
        self._count(self.manifest.with_flush(number, added, {}))
        self.holds.counts(self.manifest)  # repeated, as after an interrupt

    def put_together(self, name: str) -> None:
        gone = self.manifest.tables.get(name, ())
        if len(gone) > 1:
            merged = f"merged/{name}/{self.manifest.number:012}-{len(gone)}/t={name}"
            now = self._segment(merged, sum(segment.rows for segment in gone))
            self._count(self.manifest.with_segments(name, (now,)))
            self.holds.drop(gone)

    def _count(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.holds.counts(manifest)

    def _segment(self, folder: str, rows: int = ROWS) -> Segment:
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        return Segment(folder, ("part.parquet",), ("",), (rows,))

    def there(self) -> set[str]:
        return {str(p.relative_to(self.root)) for p in self.root.rglob("t=*")}

    def counting(self) -> set[str]:
        return {s.folder for found in self.manifest.tables.values() for s in found}


def test_what_somebody_reads_is_there_and_the_rest_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "FEWEST_ROWS", 1_000_000)
    for seed in seeds(40):
        random, tables = Random(seed), Tables(tmp_path / f"{seed}")
        readers: list[Hold] = []
        for _ in range(40):
            match random.randrange(5):
                case 0 if len(readers) < 3:
                    readers.append(tables.holds.begin(random.choice("ab")))
                case 1 if readers:
                    reader = random.choice(readers)
                    reader.forget(reader.later[: random.randrange(len(reader.later) + 1)])
                case 2 if readers:
                    readers.pop(random.randrange(len(readers))).close()
                case 3:
                    tables.put_together(random.choice("ab"))
                case _:
                    tables.flush(*random.choice(["a", "b", "ab"]))
            held = {s.folder for r in readers for s in (*r.first, *r.later)}
            assert tables.there() == tables.counting() | held
        for reader in readers:
            reader.close()
        assert tables.there() == tables.counting()


def test_a_reader_has_each_flush_of_its_table_in_order(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.flush("a", "b")
    reader = tables.holds.begin("a")
    assert [s.folder for s in reader.first] == ["flush/000000000001-a/t=a"]
    for names in ("a", "b", "ab"):
        tables.flush(*names)
    tables.put_together("a")
    assert [s.folder[6:18] for s in reader.later] == ["000000000002", "000000000004"]
    reader.forget(reader.later[:1])
    assert [s.folder[6:18] for s in reader.later] == ["000000000004"] and not reader.first


@pytest.mark.parametrize("bound", ["FEWEST_ROWS", "MOST_HELD"])
def test_a_reader_that_is_too_slow_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(manifest, "FEWEST_ROWS", 0 if bound == "FEWEST_ROWS" else 10_000)
    monkeypatch.setattr(manifest, "MOST_HELD", 1_000 if bound == "FEWEST_ROWS" else 4)
    tables = Tables(tmp_path)
    for _ in range(4):
        tables.flush("a")
    reader = tables.holds.begin("a")
    for _ in range(4):
        tables.flush("a")
        tables.put_together("a")
        assert not reader.is_over, "half of what there is"
    tables.flush("a")
    assert reader.is_over and not reader.later
    assert tables.there() == tables.counting()


def test_who_reads_what_is_deleted_has_to_begin_anew(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.flush("a")
    reader = tables.holds.begin("a")
    tables.holds.close()
    assert reader.is_over and not reader.first
