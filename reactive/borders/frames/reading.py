"""Frames of many libraries, and files, as a `pyarrow.Table` whose values Python has.

    __arrow_c_stream__       polars, pandas, DuckDB, pyarrow, and views of this library
    a path                   Parquet, CSV, Feather; JSON lines
    frames of narwhals       Modin, cuDF, Ibis, Dask, LazyFrame, its own frames
    dictionaries             a dictionary of columns; a list of dictionaries, the rows

Dictionary-encoded columns become plain ones, and nanoseconds microseconds; time zones are kept.

Sound:  no value is rounded or cut: a time of 1 ns is refused.
Cost:   O(1) for Arrow data; else O(values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from optimizer.errors import PlanError
from optimizer.kinds.kind import Places, Scalar, Struct, kind_of
from optimizer.kinds.texts import columns_of
from reactive.engine.runtime import needs
from reactive.engine.runtime.large_stack import NESTED, is_too_deep
from reactive.errors import TableError

FILES: dict[str, tuple[str, str]] = {
    ".parquet": ("pyarrow.parquet", "read_table"),
    ".csv": ("pyarrow.csv", "read_csv"),
    ".feather": ("pyarrow.feather", "read_table"),
    ".arrow": ("pyarrow.feather", "read_table"),
    ".jsonl": ("pyarrow.json", "read_json"),
}
"""The module and function that read a file, by its suffix."""


def read_frame(data: Any, what: str = "a frame", row_type: Any = None) -> Any:
    """Return a frame as a `pyarrow.Table` of plain columns.

    Parameters
    ----------
    row_type: the class of the rows to be made, which decides the meaning of an empty CSV cell.

    Raises
    ------
    PlanError: `data` is no frame, or a library is missing.
    TableError: a value is finer than a microsecond, or the values of a column have no common type.

    >>> read_frame({"id": [1, 2]}).column_names, read_frame([{"id": 1}, {"id": None}]).num_rows
    (['id'], 2)
    """
    needs.check_library(what)
    import pyarrow as pa

    try:
        found = _to_table(data, what)
        if row_type is not None and isinstance(data, str | Path) and _is_csv(Path(data)):
            found = _with_empty_texts(found, row_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TableError(
            f"{what}: a column has values of several types, or of one that Arrow has not: {error}\n"
            "  have each column be of one type and all be of one length, or add rows of a class"
        ) from None
    except UnicodeEncodeError as error:
        raise TableError(
            f"{what}: cannot take {error.object!r:.100}: it has half of a character (a lone "
            "surrogate), which a frame cannot hold\n  give whole characters, or add rows of a class"
        ) from None
    return plain_columns(found)


def is_frame(data: Any) -> bool:
    """Return True for objects with columns; paths and lists have none."""
    return hasattr(data, "__arrow_c_stream__") or _is_known_to_narwhals(data)


def _to_table(data: Any, what: str) -> Any:
    """Return any kind of frame, or the file at a path, as an Arrow table. Raises if it is none."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, str | Path):
        return _read_file(Path(data), what)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return _of_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data, what)
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data):
        return pa.Table.from_pylist(list(data))
    if _is_known_to_narwhals(data):
        return _of_narwhals(data, what)
    raise _no_frame(data, what)


def _no_frame(data: Any, what: str) -> PlanError:
    """Return the error for data that is not a frame."""
    return PlanError(
        f"{what}: {type(data).__name__} is no frame: {data!r:.100}\n"
        "  give what has __arrow_c_stream__, as a DataFrame of polars or pandas, a pyarrow.Table, "
        "a path, a list of dictionaries"
    )


def _of_stream(data: Any, what: str) -> Any:
    """Return an Arrow stream as a table. Raises `PlanError` if its column has no name."""
    import pyarrow as pa

    _check_objects(data, what)
    try:
        return pa.table(data)
    except pa.ArrowInvalid:  # a stream of one column without a name
        raise _no_frame(data, what) from None


def _check_objects(data: Any, what: str) -> None:
    """Refuse columns of Python objects, which polars exports as memory addresses."""
    is_polars = type(data).__module__.partition(".")[0] == "polars"
    schema = getattr(data, "schema", {}) if is_polars else {}
    for name, kind in schema.items():
        if str(kind) == "Object":
            raise TableError(
                f"{what}: column {name!r} is of Python's objects, which are no data\n"
                "  make it a column of numbers, text or structs, or add rows of a class"
            )


def _read_file(path: Path, what: str) -> Any:
    """Return the table in a file, by the ending of its name.

    Raises `PlanError` for an unknown one.
    """
    found = FILES.get(path.suffix.lower())
    if found is None:
        raise PlanError(
            f"{what}: nothing is known that reads {path.name!r}\n"
            f"  the names of files end in {', '.join(FILES)}; read others yourself, and give the "
            "frame"
        )
    module, name = found
    read: Callable[..., Any] = getattr(import_module(module), name)
    if name == "read_json":
        _check_depth(path, what)
    if not _is_csv(path):
        return read(str(path))
    options = import_module(module).ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True
    )
    return read(str(path), convert_options=options)


def _check_depth(path: Path, what: str) -> None:
    """Refuse JSON nested so deeply that Arrow would crash the process.

    Arrow also reads values that span several lines. Then some line is not of the form `{...}`.
    """
    is_by_line = True
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if is_too_deep(line):
                raise _too_deep(what, f"{path}, line {number}")
            inner = line.strip()
            is_by_line &= not inner or (inner[0] == "{" and inner[-1] == "}")
    if not is_by_line and is_too_deep(path.read_text(encoding="utf-8", errors="replace")):
        raise _too_deep(what, str(path))


def _too_deep(what: str, where: str) -> TableError:
    return TableError(
        f"{what}: cannot read {where}: a value is nested more than {NESTED} deep\n  leave it out"
    )


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _with_empty_texts(table: Any, row_type: Any) -> Any:
    """Replace nulls of a CSV by empty texts, in the columns of fields that are never None."""
    import pyarrow as pa

    of = kind_of(row_type)
    if isinstance(of, Struct):
        places = places_of(of.fields, table.column_names)
        fields = {place: of.fields[name] for name, place in places.items()}
    else:
        fields = dict(enumerate(of.items if isinstance(of, Places) else (of,)))
    for place, kind in fields.items():
        if kind == Scalar(str) and place < table.num_columns and table.column(place).null_count:
            texts = table.column(place).cast(pa.string()).fill_null("")
            table = table.set_column(place, table.column_names[place], texts)
    return table


def places_of(fields: Iterable[str], columns: list[str]) -> dict[str, int]:
    """Return the position of the column of each field.

    Raises
    ------
    PlanError: several columns match one field.
    """
    try:
        return columns_of(fields, columns)
    except ValueError as error:
        raise PlanError(str(error)) from None


def _of_pandas(data: Any) -> Any:
    """Convert a pandas DataFrame, with its index if that has a name; NaN becomes null."""
    import pyarrow as pa

    is_named = any(name is not None for name in data.index.names)
    if data.columns.has_duplicates:
        columns = [data.iloc[:, place] for place in range(data.shape[1])]
        arrays = [pa.Array.from_pandas(column) for column in columns]
        return pa.Table.from_arrays(arrays, names=[str(name) for name in data.columns])
    table = pa.Table.from_pandas(data.reset_index() if is_named else data, preserve_index=False)
    return table.replace_schema_metadata(None)


def _is_known_to_narwhals(data: Any) -> bool:
    """Return True if narwhals is installed, and takes the data for a frame."""
    try:
        import narwhals as nw
    except ModuleNotFoundError:
        return False
    known = nw.from_native(data, pass_through=True)
    return isinstance(known, nw.DataFrame | nw.LazyFrame)


def _of_narwhals(data: Any, what: str) -> Any:
    """Return a frame that narwhals knows as an Arrow table; a lazy frame is computed."""
    import narwhals as nw

    frame: Any = nw.from_native(data)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    _check_objects(frame.to_native(), what)
    return frame.to_arrow()


def plain_columns(table: Any) -> Any:
    """Convert the columns of a table to plain types, whose values are Python's."""
    return with_types(table, table.column_names, [plain_type(field.type) for field in table.schema])


def with_types(table: Any, names: list[str], types: list[Any]) -> Any:
    """Convert the columns of a table to other names and types.

    Raises
    ------
    TableError: a value does not fit its new type.
    """
    import pyarrow as pa

    if names == table.column_names and types == table.schema.types:
        return table
    fields = [
        pa.field(name, of, old.nullable)
        for name, of, old in zip(names, types, table.schema, strict=True)
    ]
    columns = [_with_type(c, f) for c, f in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)) if fields else table


def _with_type(column: Any, field: Any) -> Any:
    """Convert a column to a field's type. Raises `TableError` if a value does not fit."""
    import pyarrow as pa

    if column.type == field.type:
        return column
    try:
        return pa.chunked_array(
            [_rebuilt(chunk, field.type) for chunk in column.chunks], field.type
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(
            f"column {field.name!r} of {column.type} has a value that {field.type} has not: "
            f"{error}\n"
            "  Python knows no nanoseconds: round the column, or cast it to text"
        ) from None


def _rebuilt(array: Any, of: Any) -> Any:
    """Convert an array to a type; fields of structs are matched by position."""
    import pyarrow as pa
    from pyarrow import compute

    own = array.type
    if own == of:
        return array
    if pa.types.is_dictionary(own):
        return _rebuilt(array.dictionary, of).take(array.indices)
    if pa.types.is_run_end_encoded(own):
        return _rebuilt(compute.run_end_decode(array), of)
    if isinstance(own, pa.BaseExtensionType):
        return _rebuilt(array.storage, of)
    if pa.types.is_struct(own):
        parts = [_rebuilt(array.field(n), of.field(n).type) for n in range(of.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(of), mask=array.is_null())
    if pa.types.is_list(of):
        is_offset = pa.types.is_list(own) or pa.types.is_map(own)
        listed = array if is_offset else array.cast(pa.list_(own.value_type))
        whole = pa.concat_arrays([listed])
        values = whole.values if not pa.types.is_map(own) else _entries(whole, of.value_type)
        return pa.ListArray.from_arrays(
            whole.offsets, _rebuilt(values, of.value_type), mask=whole.is_null()
        )
    return array.cast(of)


def _entries(maps: Any, of: Any) -> Any:
    """Return the pairs of maps as structs."""
    import pyarrow as pa

    return pa.StructArray.from_arrays([maps.keys, maps.items], names=[f.name for f in of])


def plain_type(of: Any) -> Any:
    """Return the plain type for the values of a type.

    >>> import pyarrow as pa
    >>> plain_type(pa.dictionary(pa.int8(), pa.string())), plain_type(pa.timestamp("ns", "UTC"))
    (DataType(string), TimestampType(timestamp[us, tz=UTC]))
    """
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(of) or types.is_run_end_encoded(of):
        return plain_type(of.value_type)
    if isinstance(of, pa.BaseExtensionType):
        return of if of == pa.uuid() else plain_type(of.storage_type)
    if types.is_timestamp(of):
        return pa.timestamp("us", of.tz)
    if types.is_struct(of):
        return pa.struct([_plain_field(of.field(place)) for place in range(of.num_fields)])
    if types.is_map(of):
        return pa.list_(pa.struct([("key", plain_type(of.key_type)), _plain_field(of.item_field)]))
    if _is_list(of):
        return pa.list_(plain_type(of.value_type))
    simple: dict[Callable[[Any], bool], Callable[[], Any]] = {
        types.is_duration: partial(pa.duration, "us"),
        types.is_time: partial(pa.time64, "us"),
        types.is_date: pa.date32,
        types.is_float16: pa.float64,
        types.is_string_view: pa.string,
        types.is_large_string: pa.large_string,
        types.is_binary_view: pa.binary,
    }
    return next((made() for is_such, made in simple.items() if is_such(of)), of)


def _is_list(of: Any) -> bool:
    """Return True for an Arrow type of lists, of any layout."""
    from pyarrow import types

    tests = [types.is_list, types.is_large_list, types.is_fixed_size_list]
    tests += [
        getattr(types, name, types.is_list) for name in ("is_list_view", "is_large_list_view")
    ]
    return any(is_list(of) for is_list in tests)


def _plain_field(field: Any) -> Any:
    return field.with_type(plain_type(field.type))
