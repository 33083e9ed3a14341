"""Rewritten JSON lines: unchanged blocks keep their rows, and a change is converted alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Sum
from reactive.borders.sources.files import blocks
from reactive.borders.sources.files.blocks import KeptBlocks, LineBlock
from reactive.borders.sources.files.row_maker import RecordMaker, make_row_maker
from reactive.borders.sources.files.texts import FileChunk, FilePlace, Lines
from tests.budget import examples


class Sale(NamedTuple):
    id: int
    note: str


def form() -> Lines:
    maker: Any = make_row_maker(Sale, by_name=False)
    assert isinstance(maker, RecordMaker)
    return Lines(maker, "utf-8", True)


def line(number: int, note: str = "x") -> str:
    return json.dumps({"id": number, "note": note}) + "\n"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SIZE", 40)
    monkeypatch.setattr(blocks, "LEAST", 0)


WHOLE = [line(1), line(2, "ü"), line(3, "a" * 50), line(7, "\r"), line(9)[:-1] + "\r\n"]
OTHERS = ["\n", " ", "no json\n", '{"id": 4}\n', '{"id": 5}', '{"id": 6,\n', "[1"]
LINES = st.sampled_from([*WHOLE, *OTHERS, '\ufeff{"id": 8, "note": "b"}\n'])
TEXTS = st.lists(LINES, max_size=12).map("".join)


def told(chunk: FileChunk) -> Any:
    refused = [(each.given, str(each.error)) for each in chunk.refused]
    return chunk.rows, refused, chunk.length, chunk.lines, chunk.is_ragged, chunk.waits


@pytest.mark.usefixtures("small_blocks")
@given(st.lists(TEXTS, min_size=1, max_size=5), st.booleans())
@examples(150)
def test_blocks_that_are_known_give_what_the_whole_file_gives(
    texts: list[str], is_calm: bool
) -> None:
    kept, lines = KeptBlocks(), form()
    for text in texts:
        for data in (text.encode(), text.encode() + b'\xff{"id": 1}\n'):
            wanted = lines.take(data, FilePlace("f"), is_calm=is_calm)
            found = lines.take(data, FilePlace("f", blocks=kept.of("f")), is_calm=is_calm)
            assert told(found) == told(wanted)
            kept.replace("f", found.blocks)


@pytest.mark.usefixtures("small_blocks")
@given(TEXTS, TEXTS, TEXTS)
@examples(100)
def test_blocks_of_a_grown_file_are_found_again(first: str, more: str, edit: str) -> None:
    kept, lines = KeptBlocks(), form()
    begun = lines.take(first.encode(), FilePlace("f"), is_calm=False)
    kept.replace("f", begun.blocks)
    rest = first.encode()[begun.length :] + more.encode()
    grown = lines.take(rest, FilePlace("f", begun.lines), is_calm=False)
    kept.extend("f", grown.blocks)
    for text in (first + more, first + edit + more, edit + more):
        found = lines.take(text.encode(), FilePlace("f", blocks=kept.of("f")), is_calm=False)
        assert told(found) == told(lines.take(text.encode(), FilePlace("f"), is_calm=False))


def test_refused_lines_are_not_kept(small_blocks: None) -> None:
    chunk = form().take((line(1) * 3 + "no json\n").encode(), FilePlace("f"), is_calm=True)
    kept = KeptBlocks()
    kept.replace("f", chunk.blocks)
    assert len(chunk.refused) == 1 and not any(block.refused for block in kept.of("f"))


def test_small_files_and_many_small_pieces_are_not_kept() -> None:
    kept = KeptBlocks()
    kept.replace("f", form().take(line(1).encode(), FilePlace("f"), is_calm=True).blocks)
    assert kept.of("f") == ()
    large = LineBlock(b"", blocks.LEAST, 1, ())
    kept.replace("f", [large])
    for _ in range(1000):
        kept.extend("f", [LineBlock(b"", 10, 1, ())])
    assert kept.of("f") == ()


def versions(count: int) -> Iterator[Sequence[str]]:
    """Yield the lines of a file, each time with one more edit."""
    every = [line(number) for number in range(count)]
    yield [*every]
    every[count // 2] = line(count // 2, "edited")
    yield [*every]
    every.insert(count // 3, line(-1, "new"))
    yield [*every]
    yield every[:-1]


def conversions(count: int) -> list[int]:
    """Return the number of lines that are converted to read each version of a file."""
    kept, lines, found = KeptBlocks(), form(), list[int]()
    make_all = lines._make_all

    def counted(values: Sequence[Any]) -> list[Any]:
        found[-1] += len(values)
        return make_all(values)

    lines._make_all = counted
    for version in versions(count):
        found.append(0)
        place = FilePlace("f", blocks=kept.of("f"))
        chunk = lines.take("".join(version).encode(), place, is_calm=True)
        kept.replace("f", chunk.blocks)
    return found


def test_one_line_of_many_takes_the_lines_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LEAST", 0)
    monkeypatch.setattr(blocks, "SIZE", 1000)
    first, *edits = conversions(5_000)
    assert first == 5_000
    assert max(edits) < 3 * 1000 / len(line(1)), edits


def test_a_watched_file_is_followed_through_edits(tmp_path: Path, small_blocks: None) -> None:
    path, db = tmp_path / "sales.jsonl", Database()
    path.write_text("".join(next(versions(50))))
    table: Any = db.watch(str(path), Sale)
    view = table.group_by(lambda s: s.note).aggregate(Sum(lambda s: s.id)).materialize()
    with db:
        for version in [*versions(50), *versions(20)]:
            changed = path.with_suffix(".new")
            changed.write_text("".join(version))
            changed.replace(path)
            table.catch_up(30)
            assert sorted(table) == sorted(Sale(**json.loads(text)) for text in version)
            view.verify()


@given(TEXTS, st.booleans())
@examples(150)
def test_lines_together_give_what_each_line_gives_by_itself(text: str, is_calm: bool) -> None:
    together, alone = form(), form()
    alone._make_all = None  # type: ignore[assignment]  # raises: each line is converted by itself
    place = FilePlace("a")
    assert told(together.take(text.encode(), place, is_calm=is_calm)) == told(
        alone.take(text.encode(), place, is_calm=is_calm)
    )


def test_lines_of_other_kinds_are_converted_as_alone() -> None:
    given = [{"id": 1, "note": "a"}, {"note": "b", "id": 2}, {"id": 3, "note": "c", "more": 4}]
    maker = make_row_maker(Sale, by_name=False)
    assert maker.of_objects(given) == [maker.of_object(each) for each in given]
    assert maker.of_objects([]) == []
