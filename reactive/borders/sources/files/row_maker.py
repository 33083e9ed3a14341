"""Rows of a class, made from JSON objects by field names, or from cells by column names.

    {"id": 7, "total": 2}     id,total        Order(id=7, total=2.0)
                              7,2.0

Values of their declared classes are used unchanged. The combinations of classes for which this
holds for a whole row are remembered.

State:  the combinations of classes that need no conversion; the matches of key names to fields.
Cost:   O(fields) for a row, a microsecond or less without conversions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import starmap
from operator import itemgetter
from typing import Any

from optimizer.kinds.fields import members
from optimizer.kinds.kind import ANYTHING, Items, Kind, Places, Struct, declares_none, kind_of
from optimizer.kinds.texts import columns_of
from reactive.borders.sources.files.values import (
    Made,
    UnfitFieldValue,
    from_json,
    from_text,
    unconverted_classes,
)
from reactive.engine.collections.frozen_object import FrozenObject
from reactive.engine.runtime.interrupts import reraise_asynchronous

MOST = 1024
"""The most combinations of classes that are remembered."""
_OBJECTS = frozenset({dict, FrozenObject})


class UnmadeRow(ValueError):
    """The reason why a row cannot be made, with the column if known."""

    def __init__(self, column: str | None, reason: str) -> None:
        super().__init__(reason if column is None else f"column {column!r}: {reason}")


class _Field:
    """A parameter of the constructor of rows."""

    __slots__ = ("is_optional", "is_plain", "json", "kind", "name", "parameter", "text")

    def __init__(self, parameter: inspect.Parameter, kind: Kind, by_name: bool) -> None:
        self.parameter = parameter
        self.name = parameter.name
        self.kind = kind
        self.is_plain = unconverted_classes(kind)
        self.is_optional = declares_none(kind)
        self.json: Made = from_json(kind, record_maker(by_name), by_name=by_name)
        self.text: Made = from_text(kind, record_maker(False))

    @property
    def has_default(self) -> bool:
        """True if a row can be made without it."""
        return self.parameter.default is not inspect.Parameter.empty


class RecordMaker:
    """A maker of the records of a class.

    by_name: True for values from Arrow (see `from_json`).
    """

    def __init__(self, of: Struct, by_name: bool = False) -> None:
        self._kind = kind = of.python
        self._plain: set[tuple[type, ...]] = set()
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        self.fields = _constructor_fields(of, by_name)
        """The parameters of the constructor."""
        names = [field.name for field in self.fields]
        self._get: Any = itemgetter(*names) if len(names) > 1 else None
        by_name = any(f.parameter.kind is inspect.Parameter.KEYWORD_ONLY for f in self.fields)
        self._is_by_place = not by_name
        """True if the constructor takes all fields by place."""
        self._make: Callable[[Sequence[Any]], Any] = (
            (lambda values: kind(**dict(zip(names, values, strict=True))))
            if by_name
            else (lambda values: kind(*values))
        )

    def of_object(self, value: Any) -> Any:
        """Return a record made of a JSON object.

        Raises `UnfitFieldValue` for another value, `UnmadeRow` if a field is missing or
        does not fit.
        """
        if type(value) in _OBJECTS:
            try:
                values = self._get(value)
            except (KeyError, TypeError):
                return self._of_some(value)
            return self.of_values(values)
        if isinstance(value, self._kind):
            return value
        raise UnfitFieldValue(value, self._kind)

    def of_objects(self, values: Sequence[Any]) -> list[Any]:
        """Return the records made of JSON objects, as `of_object` makes them one by one."""
        if {*map(type, values)} <= _OBJECTS:
            try:
                found = [*map(self._get, values)]
            except (KeyError, TypeError):
                return [self.of_object(value) for value in values]
            fields = zip(self.fields, zip(*found, strict=True), strict=False)
            if all(k in field.is_plain for field, column in fields for k in {*map(type, column)}):
                return [
                    *(starmap(self._kind, found) if self._is_by_place else map(self._make, found))
                ]
        return [self.of_object(value) for value in values]

    def of_values(self, values: tuple[Any, ...]) -> Any:
        """Return a record made of one value for each field."""
        kinds = tuple(map(type, values))
        if kinds not in self._plain:
            if not all(k in field.is_plain for k, field in zip(kinds, self.fields, strict=True)):
                return self._make(
                    [self._convert(f, v) for f, v in zip(self.fields, values, strict=True)]
                )
            if len(self._plain) < MOST:
                self._plain.add(kinds)
        return self._make(values)

    def of_cells(self, columns: Sequence[str]) -> Callable[[Sequence[str]], Any]:
        """Return a function that makes records of cells.

        Raises
        ------
        UnmadeRow: a field has neither a column nor a default.
        """
        try:
            places = columns_of([field.name for field in self.fields], columns)
        except ValueError as error:
            raise UnmadeRow(None, str(error)) from None
        for field in self.fields:
            if field.name not in places and not (field.has_default or field.is_optional):
                raise UnmadeRow(None, f"no column {field.name!r} among {', '.join(columns)}")
        there = [(field, places[field.name]) for field in self.fields if field.name in places]
        steps = [(field.text, place) for field, place in there]
        width, kind = len(columns), self._kind
        names = [field.name for field in self.fields]
        is_whole = len(there) == len(names)
        make = self._make
        absent = {f.name: None for f in self.fields if f.name not in places and not f.has_default}

        def make_value(cells: Sequence[str]) -> Any:
            if len(cells) != width:
                raise UnmadeRow(None, f"{len(cells)} cells, not {width}")
            try:
                values = [convert(cells[place]) for convert, place in steps]
            except Exception:
                values = [_convert_field(field, field.text, cells[place]) for field, place in there]
            if is_whole:
                return make(values)
            known = zip([field.name for field, _ in there], values, strict=True)
            return kind(**{**absent, **dict(known)})

        return make_value

    def _of_some(self, value: dict[str, Any]) -> Any:
        """Return a record made of an object that may lack fields.

        Raises `UnmadeRow` for a missing field that is required.
        """
        given: dict[str, Any] = {}
        keys = tuple(value)
        places = self._places.get(keys)
        if places is None:
            places = columns_of([field.name for field in self.fields], keys)
            if len(self._places) < MOST:
                self._places[keys] = places
        for field in self.fields:
            if field.name in places:
                given[field.name] = self._convert(field, value[keys[places[field.name]]])
            elif field.is_optional and not field.has_default:
                given[field.name] = None
            elif not field.has_default:
                raise UnmadeRow(None, f"no {field.name!r} in {value!r:.80}")
        return self._kind(**given)

    def _convert(self, field: _Field, value: Any) -> Any:
        return value if type(value) in field.is_plain else _convert_field(field, field.json, value)


class ValueMaker:
    """A maker of rows that are not records: tuples by column positions, or single values."""

    def __init__(self, kind: Kind, by_name: bool = False) -> None:
        self._kind = kind
        self.of_object: Made = from_json(kind, record_maker(by_name), by_name=by_name)
        """Make a row of a JSON value."""

    def of_objects(self, values: Sequence[Any]) -> list[Any]:
        """Return the rows made of JSON values."""
        return [self.of_object(value) for value in values]

    def of_cells(self, columns: Sequence[str]) -> Callable[[Sequence[str]], Any]:
        """Return a function that makes rows of cells."""
        match self._kind:
            case Places(items):
                return _of_places([from_text(each, record_maker(False)) for each in items], columns)
            case Items(python, of) if python is tuple:
                item = from_text(of, record_maker(False))
                return lambda cells: tuple([item(cell) for cell in cells])
            case other:
                return _of_one_cell(from_text(other, record_maker(False)))


def make_row_maker(row_type: Any, *, by_name: bool = False) -> RecordMaker | ValueMaker:
    """Return the maker of rows of a class; `by_name` reads values of Arrow (`from_json`)."""
    kind = kind_of(row_type)
    return RecordMaker(kind, by_name) if isinstance(kind, Struct) else ValueMaker(kind, by_name)


def record_maker(by_name: bool) -> Callable[[Struct], Made]:
    """Return a function that returns the maker of inner records of a class.

    It is created at the first record, because classes may be recursive.
    """

    def of_kind(kind: Struct) -> Made:
        known: list[RecordMaker] = []

        def make_value(value: Any) -> Any:
            if not known:
                known.append(RecordMaker(kind, by_name))
            return known[0].of_object(value)

        return make_value

    return of_kind


def _constructor_fields(of: Struct, by_name: bool) -> list[_Field]:
    """Return the fields that a constructor takes; those declared if it has no signature."""
    known, kind = of.fields, of.python
    declared = members(kind)
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, keyword) for name in declared]
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [
        _Field(each, known.get(each.name, known.get(f"_{each.name}", ANYTHING)), by_name)
        for each in parameters
        if each.kind not in variable
    ]


def _convert_field(field: _Field, convert: Made, value: Any) -> Any:
    """Convert a value of a field. Raises `UnmadeRow`, which names the field, if it does not fit."""
    try:
        return convert(value)
    except UnmadeRow as error:
        raise UnmadeRow(field.name, str(error)) from error
    except Exception as error:
        reraise_asynchronous(error)
        told = error if isinstance(error, UnfitFieldValue) else UnfitFieldValue(value, field.kind)
        raise UnmadeRow(field.name, str(told)) from error


def _of_one_cell(convert: Made) -> Callable[[Sequence[str]], Any]:
    """Return the function that converts a row of one cell. It raises `UnmadeRow` for others."""

    def make_value(cells: Sequence[str]) -> Any:
        if len(cells) != 1:
            raise UnmadeRow(None, f"{len(cells)} cells, not 1")
        return convert(cells[0])

    return make_value


def _of_places(steps: list[Made], columns: Sequence[str]) -> Callable[[Sequence[str]], Any]:
    """Return the function that makes a tuple of cells by position.

    It raises `UnmadeRow`, with the column, for a cell that does not fit, or another number of
    cells.
    """

    def make_value(cells: Sequence[str]) -> Any:
        if len(cells) != len(steps):
            raise UnmadeRow(None, f"{len(cells)} cells, not {len(steps)}")
        found = []
        for place, (convert, cell) in enumerate(zip(steps, cells, strict=True)):
            try:
                found.append(convert(cell))
            except Exception as error:
                reraise_asynchronous(error)
                column = columns[place] if place < len(columns) else str(place)
                raise UnmadeRow(column, str(error)) from error
        return tuple(found)

    return make_value
