"""Scripts of statements and queries, in the format of sqllogictest.

    statement ok                    query II rowsort joined        skipif sqlite
    create table t (a integer)      select a, b from t join u      query I
                                    ----                           select a // 2 from t
                                    1 2

Records are parted by empty lines; `#` begins a comment. Only the text of a query counts: the
databases compute its result, not the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENGINES = ("duckdb", "sqlite")


@dataclass(frozen=True, slots=True)
class Record:
    """A statement or a query; `engines` are the engines that accept it."""

    kind: str
    text: str
    line: int
    engines: tuple[str, ...]
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """The records of a file, in their order."""

    name: str
    records: tuple[Record, ...]

    def groups(self, engine: str) -> Iterator[tuple[list[Record], list[Record]]]:
        """Yield runs of consecutive queries, each with all statements before it.

        No script was written for Postgres, so that it runs all texts.
        """
        statements: list[Record] = []
        queries: list[Record] = []
        for record in self.records:
            if record.fails or (engine in ENGINES and engine not in record.engines):
                continue
            if record.kind == "query":
                queries.append(record)
                continue
            if queries:
                yield list(statements), queries
                queries = []
            statements.append(record)
        if queries:
            yield list(statements), queries


def read(path: Path) -> Script:
    """The script in a file."""
    return parsed(path.name, path.read_text())


def parsed(name: str, text: str) -> Script:
    """The script in a text.

    Raises
    ------
    ValueError: a record begins with a word that is not known.
    """
    return Script(name, tuple(_records(text)))


def _records(text: str) -> Iterator[Record]:
    for first, block in _blocks(text.splitlines()):
        engines = set(ENGINES)
        while block and block[0].split()[0] in ("skipif", "onlyif"):
            word, engine = block.pop(0).split()[:2]
            engines = engines - {engine} if word == "skipif" else engines & {engine}
            first += 1
        if not block:
            continue
        kind, *rest = block[0].split()
        body = _until(block[1:], "----")
        known = tuple(engine for engine in ENGINES if engine in engines)
        match kind:
            case "statement":
                yield Record(kind, "\n".join(body), first + 1, known, fails=rest[:1] == ["error"])
            case "query":
                yield Record(kind, "\n".join(body), first + 1, known)
            case "halt":
                return
            case "hash-threshold" | "require" | "mode" | "#":
                continue
            case _:
                raise ValueError(f"line {first}: no record begins with {kind!r}")


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines between empty ones, and the number of the first."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            first = first if block else number
            block.append(line.rstrip())
        elif block:
            yield first, block
            block = []


def _until(lines: list[str], end: str) -> list[str]:
    return lines[: lines.index(end)] if end in lines else lines
