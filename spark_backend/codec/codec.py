"""Serialize rows, plans and keys to bytes, and compute the bucket of a key.

`Buckets`: the bucket of a key, 64 bits, equal for equal keys in every process. Python's `hash` is
deterministic for numbers, and equal for 1, True, 1.0 and Decimal(1). Hashes of texts, and of
everything that contains texts, differ between processes. The hash function that a type inherits
tells its equality: a subclass that keeps the hash of `str` equals texts, a subclass with its own
hash may equal anything.

    numbers                               hash(x)
    texts, bytes                          8 bytes of blake2b
    tuples, frozen sets, dataclasses      of their parts
    enum members, classes, functions      of their names
    date and time                         of the moment

Cost:   0.3 us for a number, 1 us for a text, 2 us for a small tuple.

`Codec`: rows as bytes, by pickle, if that preserves their equality. A row that equals only itself
would be decoded to a different row: it is refused, and so is a row whose class a worker cannot
import. The result is cached per type. NaN is one object in all rows (`zset.canonical`), and again
after decoding.

Cost:   pickling, and 0.3 us for a row of plain values.

`serialize_plan`: a plan without the data that only the driver needs. The captured values, the
position and the equality of a callable serve checks and messages; a lifted callable is sent as its
expression. The rest is pickled by cloudpickle, so that lambdas and the callables of a script can be
sent.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from numbers import Number
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any
from uuid import UUID

from pyspark import cloudpickle as untyped

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.earlier_names import earlier_name
from optimizer.expr import Constant, Lifted
from reactive.api.extended import is_row_class
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import DECIMAL_NAN, NAN, Row, canonical, is_nan
from reactive.engine.operators.accumulators import MonoidAccumulator, UserAccumulator
from reactive.errors import OffloadError

Hash = Callable[[Any], int]
_MASK = (1 << 64) - 1
_HALF = 1 << 63
_ODD = 0x9E3779B97F4A7C15
_NAN, _TUPLE, _SET = 0x7FF8_3C1D_55A1, 0x2545_F491_4F6C_DD1D, 0x1B87_3593_CC9E_2D51


class Buckets:
    """Compute buckets of keys of any type.

    With `stable`, a type whose hash may differ between processes is refused; otherwise its own hash
    is used, which is valid for this process.

    >>> bucket = Buckets(stable=True)
    >>> bucket(1) == bucket(True) == bucket(1.0), bucket(("a", 1)) == bucket(("a", 2))
    (True, False)
    """

    def __init__(self, *, stable: bool) -> None:
        self._stable = stable
        self._by_type: dict[type, Hash] = {
            int: hash,
            bool: hash,
            float: _hash_number,
            str: _hash_text,
            bytes: _hash_binary,
            type(None): _hash_none,
            tuple: self._hash_tuple,
            frozenset: self._hash_set,
        }

    def __call__(self, key: Any) -> int:
        """Return the bucket of a key, from -2**63 up to 2**63 - 1; neighbours are far apart."""
        kind = type(key)
        of = self._by_type.get(kind)
        value = (self._learn(kind) if of is None else of)(key) & _MASK
        return ((value ^ (value >> 32)) * _ODD & _MASK) - _HALF

    def _hash(self, value: Any) -> int:
        kind = type(value)
        of = self._by_type.get(kind)
        return (self._learn(kind) if of is None else of)(value)

    def _hash_tuple(self, values: tuple[Any, ...]) -> int:
        """Return the hash of a tuple, which depends on the order of its items."""
        found, by_type = len(values) ^ _TUPLE, self._by_type
        for value in values:
            of = by_type.get(type(value)) or self._learn(type(value))
            found = ((found ^ (found >> 29)) * _ODD + of(value)) & _MASK
        return found

    def _hash_set(self, values: Any) -> int:
        return (_SET + sum(self._hash_tuple((value,)) for value in values)) & _MASK

    def _learn(self, kind: type) -> Hash:
        """Find the hash function of a class, and remember it."""
        of = self._by_type[kind] = self._find(kind)
        return of

    def _find(self, kind: type) -> Hash:
        """Return the function that hashes values of a class; one that raises for each value if the
        class has no stable hash and the buckets must be stable."""
        own: Any = kind.__hash__
        known = _BY_HASH.get(own)
        if known is not None:
            return known
        if own is tuple.__hash__:
            return self._hash_tuple
        if own is frozenset.__hash__:
            return self._hash_set
        if kind is Bag:
            return lambda values: self._hash_set(values.items())
        if issubclass(kind, Enum) and kind.__eq__ is object.__eq__:
            return lambda member: _hash_text(f"{_first_name(kind)}.{member._name_}")
        if issubclass(kind, type | FunctionType | BuiltinFunctionType):
            return lambda named: _hash_text(_first_name(named))
        if is_record(kind):
            return self._record_hash(kind)
        if issubclass(kind, Number):  # equal numbers of all types have equal hashes
            return _hash_number
        return self._hash_unstable

    def _record_hash(self, kind: Any) -> Hash:
        """Return the hash of a dataclass, which equals only values of the same class."""
        start = _hash_text(_first_name(kind))
        values = make_value_reader([f.name for f in dataclasses.fields(kind) if _is_hashed(f)])
        return lambda record: self._hash_tuple((start, *values(record)))

    def _hash_unstable(self, value: Any) -> int:
        """Return the `hash` of this process. Raises `OffloadError` if buckets must be stable."""
        if not self._stable:
            return hash(value)
        raise OffloadError(
            f"{value!r:.100} cannot be found again after a restart: "
            f"{type(value).__name__} has no stable hash\n"
            "  make keys of numbers, texts, dates, enum members, tuples or frozen dataclasses"
        )


def _hash_number(value: Any) -> int:
    return hash(value) if value == value else _NAN


def _first_name(named: Any) -> str:
    """Return the name of a class or function under which its bucket was first computed."""
    return f"{earlier_name(named.__module__, named.__qualname__)}.{named.__qualname__}"


def _hash_text(value: str) -> int:
    data = str.encode(value, "utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _hash_binary(value: bytes) -> int:
    return int.from_bytes(blake2b(value, digest_size=8, key=b"bytes").digest(), "little")


def _hash_none(value: None) -> int:
    return 0x5851F42D4C957F2D


def _hash_moment(value: datetime) -> int:
    """Return equal hashes for equal moments; moments without a zone hash separately."""
    value = value.replace(fold=0)
    offset = value.utcoffset()
    bare = value.replace(tzinfo=None) - datetime.min
    return _hash_span(bare) if offset is None else _hash_span(bare - offset) ^ 1


def _hash_clock(value: time) -> int:
    """Return the hash of a time of day: equal times with different UTC offsets have equal
    hashes."""
    offset = value.replace(fold=0).utcoffset()
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    if offset is not None:
        seconds -= offset // timedelta(seconds=1)
    return seconds * 2_000_003 + value.microsecond


def _hash_span(value: timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * 2_000_003 + value.microseconds


def make_value_reader(names: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """Return a function that reads the values of some fields of a record."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: [getattr(record, name) for name in names]


def is_record(kind: type) -> bool:
    """Return True for a dataclass whose equality and hash were generated by `dataclass`."""
    written = (vars(kind).get("__hash__"), vars(kind).get("__eq__"))
    files = [getattr(getattr(f, "__code__", None), "co_filename", None) for f in written]
    return dataclasses.is_dataclass(kind) and files == ["<string>", "<string>"]


def _is_hashed(field: dataclasses.Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


_BY_HASH: dict[Any, Hash] = {
    int.__hash__: hash,
    **dict.fromkeys((float.__hash__, Decimal.__hash__, Fraction.__hash__), _hash_number),
    complex.__hash__: _hash_number,
    str.__hash__: _hash_text,
    bytes.__hash__: _hash_binary,
    date.__hash__: lambda value: value.toordinal() ^ 7,
    datetime.__hash__: _hash_moment,
    time.__hash__: _hash_clock,
    timedelta.__hash__: _hash_span,
    timezone.__hash__: lambda zone: _hash_span(zone.utcoffset(None)),
    UUID.__hash__: lambda value: value.int & _MASK,
}


LEAVES = (
    *(int, float, str, bytes, bool, type(None), Decimal, Fraction, UUID),
    *(date, datetime, time, timedelta, timezone, range),
)
UNORDERED = (frozenset, Bag)
NAMED = (type, FunctionType, BuiltinFunctionType)
Parts = Callable[[Any], Iterable[Any]]


class Codec:
    """Serialize rows to bytes, and compute the buckets of keys.

    >>> codec = Codec(stable=True)
    >>> loads(codec.dumps((1, "anna", float("nan")))) == (1, "anna", NAN)
    True
    """

    def __init__(self, *, stable: bool) -> None:
        self.bucket = Buckets(stable=stable)
        self._leaves: set[type] = set(LEAVES)
        self._parts: dict[type, Parts] = {tuple: tuple}
        self._parts |= dict.fromkeys(UNORDERED, tuple)
        self._others: set[type] = set()

    def dumps(self, row: Row) -> bytes:
        """Serialize a row to bytes.

        Raises
        ------
        OffloadError: its equality would be lost, or no worker could decode it.
        """
        kind = type(row)
        if kind in self._leaves:
            return pickle.dumps(row, 5)
        parts = self._parts.get(kind)
        if (
            parts is not None
            and kind not in UNORDERED
            and self._leaves.issuperset(map(type, parts(row)))
        ):
            return pickle.dumps(row, 5)
        try:
            hidden = self._check(row)
            return _dumps_hidden(row) if hidden else pickle.dumps(row, 5)
        except OffloadError as error:
            raise OffloadError(f"{row!r:.200} cannot be sent to Spark: {error}") from error
        except Exception as error:
            raise OffloadError(
                f"{row!r:.200} cannot be sent to Spark: {error}\n"
                "  classes of rows have to be importable, and their fields plain data"
            ) from error

    def _check(self, value: Any) -> bool:
        """Refuse a value that would be decoded to another; return True if it may contain a NaN that
        `canonical` does not find."""
        kind = type(value)
        if kind in self._leaves:
            return False
        if kind is complex:
            if value != value:
                raise OffloadError("a complex NaN is equal to nothing but itself")
            return False
        if isinstance(value, NAMED):
            _check_named(value)
            return False
        if kind not in self._parts and kind not in self._others:
            self._learn(kind, value)
            return self._check(value)
        parts = self._parts.get(kind)
        found = [] if parts is None else [self._check(part) for part in parts(value)]
        return kind in self._others or kind in UNORDERED or any(found)

    def _learn(self, kind: Any, value: Any) -> None:
        """Record how values of a class are compared: as a leaf, by their parts, or by their own
        equality. Raises `OffloadError` if values are equal only to themselves, or the class cannot
        be found by its name."""
        if not is_row_class(kind):
            _check_named(kind)
        if issubclass(kind, Enum) and kind.__eq__ is object.__eq__:
            self._leaves.add(kind)
        elif issubclass(kind, tuple) and kind.__eq__ is tuple.__eq__:
            self._parts[kind] = tuple
        elif kind.__eq__ is object.__eq__:
            raise OffloadError(
                f"{value!r:.100} is equal to nothing but itself\n"
                f"  make {kind.__name__} a @dataclass(frozen=True), or give it an __eq__"
            )
        elif hasattr(kind, "__dataclass_fields__"):
            compared = [field.name for field in dataclasses.fields(kind) if field.compare]
            self._parts[kind] = make_value_reader(compared)
        elif kind.__eq__ in {leaf.__eq__ for leaf in LEAVES}:
            self._leaves.add(kind)
        else:
            _check_own_equality(kind, value)
            self._others.add(kind)


def loads(data: bytes) -> Row:
    """Deserialize a row."""
    try:
        return canonical(pickle.loads(data))
    except pickle.UnpicklingError:
        return _Unpickler(io.BytesIO(data)).load()


def main_classes() -> dict[str, Any]:
    """Return the classes of the script that is run, which no worker can import."""
    main = vars(sys.modules["__main__"])
    return {
        name: value
        for name, value in main.items()
        if isinstance(value, type) and value.__module__ == "__main__"
    }


class _Pickler(pickle.Pickler):
    """A pickler that marks every NaN, at any depth."""

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of the one NaN object that stands for a NaN; None for other values."""
        if value is NAN or value is DECIMAL_NAN:
            return "decimal nan" if value is DECIMAL_NAN else "nan"
        return "nan" if type(value) is float and value != value else None


class _Unpickler(pickle.Unpickler):
    """An unpickler that loads every marked NaN as the one object that rows use."""

    def persistent_load(self, name: str) -> Any:
        return DECIMAL_NAN if name == "decimal nan" else NAN


def _dumps_hidden(row: Row) -> bytes:
    """Serialize a row; each NaN in it is loaded as the one object that rows use."""
    file = io.BytesIO()
    _Pickler(file, 5).dump(row)
    return file.getvalue()


def _check_named(thing: Any) -> None:
    """Refuse a class or function that its name does not find."""
    found: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not thing:
        raise OffloadError(
            f"no worker could import {thing.__qualname__!r}\n"
            "  define it at the top level of a module"
        )


def _check_own_equality(kind: Any, value: Any) -> None:
    """Refuse a type whose own equality does not survive pickling."""
    copied = loads(_dumps_hidden(value))
    if not (copied == value and hash(copied) == hash(value)) and not is_nan(value):
        raise OffloadError(
            f"{value!r:.100} comes back as another value\n"
            f"  pickling has to keep what {kind.__name__} is equal to"
        )


cloudpickle: Any = untyped


def serialize_plan(node: Any) -> bytes:
    """Serialize a plan, or an object that contains plans, to bytes for `pickle.loads`.

    Plans serialized in one call still share their nodes afterwards.

    Raises
    ------
    Exception: of any kind; a callable contains an object that cannot be pickled.
    """
    file = io.BytesIO()
    pickler: Any = _PlanPickler
    pickler(file, 5).dump(node)
    return file.getvalue()


def find_obstacle(node: plan.Node) -> str | None:
    """Return the reason why a plan cannot be sent, or None."""
    try:
        serialize_plan(node)
    except Exception as error:
        return f"it cannot be sent to Spark: {error}"
    return None


def serialize_classes() -> dict[str, bytes]:
    """Serialize each class of the script that is run, unless it cannot be pickled."""
    found = {}
    for name, kind in main_classes().items():
        try:
            found[name] = cloudpickle.dumps(kind)
        except Exception:  # a class that is no row may contain anything
            continue
    return found


class _PlanPickler(untyped.Pickler):
    """A pickler of plans; after loading, callables and constants are compared by identity."""

    def reducer_override(self, value: Any) -> Any:
        """Return the class and arguments that rebuild a callable, constant or plan node;
        cloudpickle reduces other values. Opaque callables and constants are identified by their
        `id`."""
        match value:
            case Opaque():
                given = (value.function, value.parameters, value.name, None, (), id(value))
                return Opaque, (*given, value.role, value.is_part)
            case Lifted():
                return Lifted, (value.body, value.names, (), value.parameters)
            case Constant():
                return Constant, (value.value, id(value), value.name)
            case UserAccumulator() | MonoidAccumulator():
                return type(value), _init_values(dataclasses.replace(value, meaning=None))
            case plan.Node():
                return type(value), _init_values(value)
            case _:
                return cloudpickle.Pickler.reducer_override(self, value)


def _init_values(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, f.name) for f in dataclasses.fields(value) if f.init)
