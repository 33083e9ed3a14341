"""Files of facts and of outputs, as the options of `.input` and `.output` say.

    .input edge(filename="roads.csv", delimiter=",")        rows of a file
    .output path(IO=sqlite, dbname="paths.db")              a table of a SQLite file
    .output path(IO=jsonfile, format=object)                an array of objects

Without options these are lines in `edge.facts` and `path.csv`, their columns separated by tabs.

Records are written `[1, nil]`, values of algebraic data types `$Add(1, 2)`. In JSON, a row or a
record is an array of its columns, or an object with `format=object`; a value of a data type is
`["$Add", 1, 2]`, and `nil` is null.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from optimizer.errors import PlanError
from reactive.errors import SourceError
from reactive.languages.datalog import rules
from reactive.languages.datalog.functors import float_in, number_in
from reactive.languages.datalog.inference import Kind, KindedColumn, ProgramTypes
from reactive.languages.datalog.tokens import wrong

Options = Mapping[str, str]
NUMBERS = frozenset({"number", "unsigned", "float"})
"""Kinds whose values are written without quotes."""
_BRANCH = re.compile(r"\s*\$\s*([\w?.]+)\s*")


def options_of(directive: rules.Directive) -> Options:
    """Return the options of a directive; raises for a kind of files that is not supported."""
    options = dict(directive.options)
    kinds: tuple[str, ...] = ("file", "sqlite", "jsonfile")
    if directive.word != "input":
        kinds += ("stdout", "json")
    if options.get("IO", "file") not in kinds:
        what = f"IO={options['IO']} of .{directive.word} is not supported"
        raise wrong(directive.at, what, f"there are {', '.join(kinds)}")
    if options.get("format", "list") not in ("list", "object"):
        what = f"format={options['format']} of .{directive.word} is not supported"
        raise wrong(directive.at, what, "there are list, object")
    if "columns" in options and directive.word != "input":
        raise wrong(directive.at, "columns are of an input", "select them in a rule")
    if not re.fullmatch(r"(\d+(:\d+)*)?", options.get("columns", "")):
        what = f"columns={options['columns']!r} are not the numbers of columns"
        raise wrong(directive.at, what, 'write columns="0:2"')
    if options.get("IO") == "sqlite" and not {"dbname", "filename"} & options.keys():
        raise wrong(directive.at, "the name of the database is missing", 'write dbname="name.db"')
    return options


def path_of(name: str, options: Options, folder: Path, suffix: str) -> Path:
    """Return the path of the file of a relation: its `filename`, else its name with a suffix."""
    if options.get("IO") == "sqlite":
        return folder / options.get("dbname", options.get("filename", ""))
    if options.get("IO") == "jsonfile":
        suffix = ".json"
    packed = ".gz" if _is_set(options, "compress") else ""
    return folder / options.get("filename", f"{name}{suffix}{packed}")


def _is_set(options: Options, name: str) -> bool:
    return options.get(name, "false") in ("true", "1")


def _delimiter(options: Options) -> str:
    return options.get("delimiter", "," if _is_set(options, "rfc4180") else "\t")


def _columns_of(options: Options) -> list[int]:
    """Return the places of the columns to read, as `columns="2:0"` says; [] for all."""
    return [int(each) for each in options.get("columns", "").split(":") if each]


class FactFormat:
    """Reads and writes the rows of a relation.

    Parameters
    ----------
    make: the function that makes a row of its values.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[KindedColumn],
        types: ProgramTypes,
        make: Callable[..., Any],
    ) -> None:
        self._name = name
        self._fields = fields
        self._types = types
        self._make = make

    # Reading.

    def read(self, path: Path, options: Options) -> Iterator[Any]:
        """Yield the rows of a file.

        Raises
        ------
        SourceError: a line has other columns or values than the relation.
        OSError: the file cannot be read.
        """
        if options.get("IO") == "sqlite":
            yield from self._read_table(path)
            return
        if options.get("IO") == "jsonfile":
            yield from self._read_json(path, options)
            return
        columns = _columns_of(options)
        for number, values in self._lines(path, options):
            if columns:
                if max(columns) >= len(values):
                    what = f"{len(values)} columns, and the last to read is {max(columns)}"
                    raise self._refused(path, number, f"the line has {what}")
                values = [values[place] for place in columns]
            if len(values) != len(self._fields):
                what = f"{len(values)} columns, not {len(self._fields)}"
                raise self._refused(path, number, f"the line has {what}")
            try:
                made = [
                    self._value(text, field.kind)
                    for text, field in zip(values, self._fields, strict=True)
                ]
            except ValueError as error:
                raise self._refused(path, number, str(error)) from None
            yield self._make(*made)

    def _refused(self, path: Path, number: int, why: str) -> SourceError:
        return SourceError(f"{path}, line {number}: cannot read a row of {self._name!r}: {why}")

    def _lines(self, path: Path, options: Options) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the columns of each line after the header, if there is one."""
        delimiter = _delimiter(options)
        with self._open(path, options, "rt") as file:
            if _is_set(options, "rfc4180"):
                lines = csv.reader(file, delimiter=delimiter)
                found = ((lines.line_num, each) for each in lines)
            else:
                found = (
                    (number, self._cut(line.rstrip("\r\n"), delimiter))
                    for number, line in enumerate(file, 1)
                    if self._fields or line.strip()
                )
            for number, values in found:
                if number > 1 or not _is_set(options, "headers"):
                    yield number, values

    def _open(self, path: Path, options: Options, mode: Any) -> Any:
        is_packed = _is_set(options, "compress") or path.suffix == ".gz"
        opened: Any = gzip.open if is_packed else open
        return opened(path, mode, encoding="utf-8", newline="")

    def _cut(self, line: str, delimiter: str) -> list[str]:
        """Return the columns of a line; the signs of a record are no delimiters."""
        if not self._fields:
            return [] if line in ("", "()") else [line]
        if not any(field.kind.family in ("record", "data") for field in self._fields):
            return line.split(delimiter)
        found, start, depth = [], 0, 0
        for place, sign in enumerate(line):
            depth += (sign in "([") - (sign in ")]")
            if not depth and line.startswith(delimiter, place) and place >= start:
                found.append(line[start:place])
                start = place + len(delimiter)
        return [*found, line[start:]]

    def _value(self, text: str, kind: Kind) -> Any:
        """Return the value of a kind that a text says; raises `ValueError` if it says none."""
        match kind.family:
            case "symbol":
                return text
            case "float":
                made: tuple[Any, ...] = float_in(text)
            case "number" | "unsigned" as family:
                made = number_in(family == "unsigned", text.strip())
            case _:
                value, end = self._nested(text, 0, kind)
                made = (value,) if not text[end:].strip() else ()
        if not made:
            raise ValueError(f"{text!r:.60} is no {kind}")
        return made[0]

    def _nested(self, text: str, start: int, kind: Kind) -> tuple[Any, int]:
        """Return the value that begins in a text at `start`, and the place behind it."""
        if kind.family == "record":
            if text[start:].lstrip().startswith("nil"):
                return None, text.index("nil", start) + 3
            fields = self._types.record_fields(kind)
            values, end = self._items(text, start, fields, "[", "]")
            return self._types.record_class(kind)(*values), end
        if kind.family == "data":
            found = _BRANCH.match(text, start)
            if found is None:
                raise ValueError(f"{text!r:.60} is no {kind}")
            fields = self._types.branch_fields(found[1], kind)
            values, end = [], found.end()
            if fields or text.startswith("(", end):
                values, end = self._items(text, end, fields, "(", ")")
            return self._types.branch_class(found[1], fields)(found[1], *values), end
        end = min((text.find(sign, start) % (len(text) + 1) for sign in ",])"), default=len(text))
        return self._value(text[start:end].strip(), kind), end

    def _items(
        self, text: str, start: int, fields: Sequence[KindedColumn], opening: str, closing: str
    ) -> tuple[list[Any], int]:
        """Return the values in brackets, and the place behind them."""
        end = self._after(text, start, opening)
        values: list[Any] = []
        for place, field in enumerate(fields):
            end = self._after(text, end, ",") if place else end
            value, end = self._nested(text, end, field.kind)
            values.append(value)
        return values, self._after(text, end, closing)

    def _after(self, text: str, place: int, sign: str) -> int:
        """Return the place behind a sign; raises if another one is there."""
        place += len(text[place:]) - len(text[place:].lstrip())
        if not text.startswith(sign, place):
            raise ValueError(f"{sign!r} is missing in {text!r:.60}")
        return place + 1

    def _read_table(self, path: Path) -> Iterator[Any]:
        """Yield the rows of the table, or view, with the name of the relation in a SQLite file."""
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r}")
        with closing(sqlite3.connect(path)) as connection:
            for number, row in enumerate(connection.execute(f"select * from {self._quoted}"), 1):
                try:
                    made = [
                        self._value(str(value), field.kind)
                        for value, field in zip(row, self._fields, strict=True)
                    ]
                except ValueError as error:
                    raise self._refused(path, number, str(error)) from None
                yield self._make(*made)

    def _read_json(self, path: Path, options: Options) -> Iterator[Any]:
        """Yield the rows of an array of arrays or objects in a file."""
        with self._open(path, options, "rt") as file:
            try:
                found = json.load(file)
            except ValueError as error:
                raise SourceError(f"{path}: the file is no JSON: {error}") from None
        if not isinstance(found, list):
            raise SourceError(f"{path}: the file holds no array of rows")
        for number, row in enumerate(found, 1):
            try:
                made = self._from_items(row, self._fields)
            except ValueError as error:
                what = f"{path}, row {number}: cannot read a row of {self._name!r}: {error}"
                raise SourceError(what) from None
            yield self._make(*made)

    def _from_items(self, found: Any, fields: Sequence[KindedColumn]) -> list[Any]:
        """Return the values of an array, or of an object with the names of fields."""
        if isinstance(found, dict):
            if found.keys() != {field.name for field in fields}:
                names = ", ".join(field.name for field in fields)
                raise ValueError(f"the object has the names {', '.join(found)}, not {names}")
            found = [found[field.name] for field in fields]
        if not isinstance(found, list) or len(found) != len(fields):
            raise ValueError(f"{found!r:.60} has not {len(fields)} columns")
        return [self._from_json(value, f.kind) for value, f in zip(found, fields, strict=True)]

    def _from_json(self, found: Any, kind: Kind) -> Any:
        """Return the value of a kind that JSON holds; raises `ValueError` for another kind."""
        match kind.family:
            case "record":
                if found is None:
                    return None
                values = self._from_items(found, self._types.record_fields(kind))
                return self._types.record_class(kind)(*values)
            case "data" if isinstance(found, list) and found and isinstance(found[0], str):
                branch = found[0].removeprefix("$")
                fields = self._types.branch_fields(branch, kind)
                values = self._from_items(found[1:], fields)
                return self._types.branch_class(branch, fields)(branch, *values)
            case "symbol" if isinstance(found, str):
                return found
            case "float" if type(found) in (int, float):
                return float(found)
            case "number" if type(found) is int:
                return found
            case "unsigned" if type(found) is int and found >= 0:
                return found
        raise ValueError(f"{found!r:.60} is no {kind}")

    @property
    def _quoted(self) -> str:
        return _quoted(self._name)

    # Writing.

    def write(self, path: Path, options: Options, rows: Iterable[Any]) -> None:
        """Write rows to a file, in place of what it holds; `IO=stdout` and `IO=json` print them."""
        if options.get("IO") in ("json", "jsonfile"):
            self._write_json(path, options, rows)
            return
        lines = sorted(
            [self._text(value, f.kind) for value, f in zip(row, self._fields, strict=True)]
            for row in rows
        )
        if options.get("IO") == "stdout":
            line = "=" * 15
            sys.stdout.write(
                f"{'-' * 15}\n{self._name}\n{line}\n{self._csv(lines, options)}{line}\n"
            )
        elif options.get("IO") == "sqlite":
            self._write_table(path, rows)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open(path, options, "wt") as file:
                file.write(self._csv(lines, options))

    def _write_json(self, path: Path, options: Options, rows: Iterable[Any]) -> None:
        """Write or print rows as an array with a line for each row."""
        as_objects = options.get("format") == "object"
        ordered = sorted(rows, key=lambda row: self._texts(row, self._fields))
        lines = (
            json.dumps(self._to_items(row, self._fields, as_objects), ensure_ascii=False)
            for row in ordered
        )
        text = "[" + ",\n".join(lines) + "]\n"
        if options["IO"] == "json":
            sys.stdout.write(text)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open(path, options, "wt") as file:
            file.write(text)

    def _to_items(
        self, values: Sequence[Any], fields: Sequence[KindedColumn], as_objects: bool
    ) -> Any:
        """Return values as an array, or as an object with the names of fields."""
        made = [
            self._to_json(value, field.kind, as_objects)
            for value, field in zip(values, fields, strict=True)
        ]
        names = [field.name for field in fields]
        return dict(zip(names, made, strict=True)) if as_objects else made

    def _to_json(self, value: Any, kind: Kind, as_objects: bool) -> Any:
        """Return what JSON holds for a value of a kind."""
        match kind.family:
            case "record" if value is not None:
                return self._to_items(value, self._types.record_fields(kind), as_objects)
            case "data":
                branch, *items = value
                fields = self._types.branch_fields(branch, kind)
                parts = zip(items, fields, strict=True)
                return [f"${branch}", *(self._to_json(v, f.kind, as_objects) for v, f in parts)]
            case _:
                return value

    def _csv(self, lines: list[list[str]], options: Options) -> str:
        """Return lines of columns; texts and records are in quotes with `rfc4180=true`."""
        delimiter = _delimiter(options)
        if _is_set(options, "rfc4180"):
            is_number = [field.kind.family in NUMBERS for field in self._fields]
            lines = [list(map(_in_quotes, line, is_number)) for line in lines]
        if _is_set(options, "headers"):
            lines = [[field.name for field in self._fields], *lines]
        return "".join(f"{delimiter.join(line) if line else '()'}\n" for line in lines)

    def _text(self, value: Any, kind: Kind) -> str:
        """Return a value as Soufflé writes it."""
        match kind.family:
            case "record":
                if value is None:
                    return "nil"
                return f"[{self._texts(value, self._types.record_fields(kind))}]"
            case "data":
                branch, *items = value
                inside = self._texts(items, self._types.branch_fields(branch, kind))
                return f"${branch}({inside})" if items else f"${branch}"
            case "float":
                return repr(value).removesuffix(".0")
            case _:
                return str(value)

    def _texts(self, values: Sequence[Any], fields: Sequence[KindedColumn]) -> str:
        return ", ".join(self._text(v, f.kind) for v, f in zip(values, fields, strict=True))

    def _write_table(self, path: Path, rows: Iterable[Any]) -> None:
        """Write rows to a table of a SQLite file, in place of the table of that name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        affinities = {"symbol": "text", "number": "integer", "unsigned": "integer", "float": "real"}
        columns = ", ".join(
            f"{_quoted(field.name)} {affinities.get(field.kind.family, 'text')}"
            for field in self._fields
        )
        if not columns:
            raise PlanError(f"relation {self._name!r} has no columns, and SQLite needs one")
        kinds = [field.kind for field in self._fields]
        made = [
            tuple(
                value if kind.family in affinities else self._text(value, kind)
                for value, kind in zip(row, kinds, strict=True)
            )
            for row in rows
        ]
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"drop table if exists {self._quoted}")
            connection.execute(f"create table {self._quoted} ({columns})")
            marks = ", ".join("?" * len(kinds))
            connection.executemany(f"insert into {self._quoted} values ({marks})", made)


def _in_quotes(text: str, is_number: bool) -> str:
    return text if is_number else _quoted(text)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
