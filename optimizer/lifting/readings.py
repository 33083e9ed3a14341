"""Readings of callables that share their code: callables that differ in plain values are read once.

`read_cached` reads callables with the same code once.

    select(lambda o: (o.id, o.total))       made twice: one code, one expression
    where(lambda o: o.total > limit)        made twice: one expression, another constant in it

Sound:  a callable that captures nothing, has no defaults and names only built-in functions is
        determined by its code, which is compared by identity. A callable that captures plain values
        is read with slots in their place (`expr.Slot`), which note if their value was read: such a
        reading holds for these values only.
State:  of the process, the last 2048 readings of codes for arguments of some classes.

`kin_of` finds kin: callables of one code that differ only in plain values of their variables.

    lambda o: o.customer == c     for c = "ann", "bob", ...     kin, with a value each

Sound:  callables with the same key compute the same with the same values. Other captured values are
        part of the key, by their meaning; classes and functions by identity and with weak
        references, so that the key of a collected one equals no other.
State:  only the codes in the keys; no captured value.

`Queries` is the interface for a reader of the queries in a callable: comprehensions over relations.
It is plugged into the reader of callables, which does not depend on plans.
`optimizer.comprehensions` implements it.
"""

from __future__ import annotations

import ast
import builtins
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from operator import attrgetter, itemgetter
from types import CellType, CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, Final, Protocol

from optimizer.callables.captures import CODE, REFLECTIVE, defaults, global_names
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import place_at
from optimizer.callables.syntax import CodeItself
from optimizer.expr import Apply, Constant, Expr, Slot, SlotValue, constant, transform, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.kinds.fields import ClassCache, classes_in, shortest_lived
from optimizer.lifting import folds
from optimizer.record import record

Reading = tuple[Expr, tuple[str, ...]]
"""An expression, and the names of its parameters."""
Read = Callable[[Opaque, Shapes], Reading]
UNREAD: Any = object()
READ = "reading"
MOST_READINGS = 2048


def read_cached(function: Opaque, shapes: Shapes, read: Read) -> Reading:
    """Return the reading of a callable for arguments of the given shapes, cached."""
    found: Reading | None = function.readings.get(shapes)
    if found is None:
        known = of_code(function, shapes)
        found = known.get(READ) or _of_kin(function, shapes, read) or read(function, shapes)
        if is_whole(found):
            function.readings[shapes] = known[READ] = found
    return found


def is_whole(reading: Reading) -> bool:
    """Return True if no part is kept as a callable, whose role is part of its text."""
    return Apply not in map(type, walk(reading[0]))


def of_all_kin(function: Opaque, shapes: Shapes, read: Read) -> Reading | None:
    """Return the reading of all callables that differ from one in plain values, with slots for
    these.

    Return None if the values decide how it is read, or there are none.
    """
    kin = kin_of(function)
    if kin is None or not kin.values:
        return None
    known = _readings(kin.key, shapes)
    found: Reading | None = known.get(READ, UNREAD)
    if found is UNREAD:
        found = known[READ] = _with_slots(function, kin, shapes, read)
    return found


def _with_slots(function: Opaque, kin: Kin, shapes: Shapes, read: Read) -> Reading | None:
    """Return the reading with slots for plain values; None if reading asked for a value."""
    held = {name: SlotValue(value) for name, value in kin.values}
    found = read(replace_captured_values(function, held), shapes)
    is_general = is_whole(found) and not any(each.is_asked for each in held.values())
    if not is_general or any(map(_holds_code, walk(found[0]))):
        return None
    names = {id(each): name for name, each in held.items()}

    def rename_slot(part: Expr) -> Expr:
        return Slot(SlotValue(names[id(part.held)]), part.name) if isinstance(part, Slot) else part

    return transform(found[0], rename_slot), found[1]


def _holds_code(part: Expr) -> bool:
    """Return True for a function of the user, which refers to its module."""
    return type(part) is Constant and isinstance(part.value, FunctionType | MethodType)


def _of_kin(function: Opaque, shapes: Shapes, read: Read) -> Reading | None:
    """Return the reading of a callable, derived from the reading of all its kin; None if it has
    none."""
    found = of_all_kin(function, shapes, read)
    if found is None:
        return None
    kin = kin_of(function)
    assert kin is not None
    values = dict(kin.values)

    def fill_slot(part: Expr) -> Expr:
        return constant(values[part.held.value], part.name) if type(part) is Slot else part

    return transform(found[0], fill_slot), found[1]


def of_code(function: Opaque, shapes: Shapes) -> dict[str, Any]:
    """Return the facts of all callables of the code of one, for arguments of the given shapes.

    Return none for a callable that is more than its code.
    """
    call = function.function
    if type(call) is not FunctionType or call.__closure__ or defaults(call):
        return {}
    known = getattr(call, "__builtins__", {})
    if function.captures or known is not vars(builtins):
        return {}
    names = global_names(call.__code__)
    if any(name in call.__globals__ or name not in known for name in names):
        return {}
    return _readings(CodeItself(call.__code__), shapes)


def _readings(key: Hashable, shapes: Shapes) -> dict[str, Any]:
    return _READINGS.find((key, shapes), _home_of_reading)


def _home_of_reading(key: Hashable) -> type | None:
    return shortest_lived(classes_in(key, _inside_reading_key))


def _inside_reading_key(value: Any) -> tuple[Any, ...]:
    return (value.value,) if type(value) is Itself else ()


_READINGS: ClassCache[dict[str, Any]] = ClassCache(lambda _: {}, MOST_READINGS)


KINDS = frozenset({int, str, float, bytes})
"""Classes of values that may differ between kin."""
PARTS = 5
"""Parts of the identity of a function (`opaque.py`)."""
KNOWN = "kin"


@record
class Kin:
    """The key of a callable without plain values of its variables, and these by their names."""

    key: Hashable
    values: tuple[tuple[str, Any], ...]


class Itself:
    """An object by identity, weakly referenced."""

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        self._reference = weakref.ref(value)

    @property
    def value(self) -> Any:
        """The object; None once it is collected."""
        return self._reference()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        value = self._reference()
        return value is not None and isinstance(other, Itself) and other._reference() is value


class Unlike(Exception):
    """A callable captures an object without lasting meaning."""


def kin_of(function: Opaque) -> Kin | None:
    """Return the kin of a callable, cached; None if it has none."""
    if KNOWN not in function.readings:
        function.readings[KNOWN] = kin_with(function, _is_none)
    found: Kin | None = function.readings[KNOWN]
    return found


def kin_with(function: Opaque, is_kept: Callable[[Any], bool]) -> Kin | None:
    """Return the kin of a callable among those that capture the same objects; None if it has none.

    `is_kept` returns True for an object that counts by identity.
    """
    try:
        return _kin(function, is_kept)
    except Unlike:
        return None


def _is_none(value: Any) -> bool:
    return False


def may_differ(value: Any) -> bool:
    """Return True for a plain value, which may differ between kin."""
    return type(value) in KINDS and value == value


def _kin(function: Opaque, is_kept: Callable[[Any], bool]) -> Kin:
    """Return the kin of a callable; raise `Unlike` if a captured object has no lasting meaning."""
    identity, called = function.identity, function.function
    if type(called) is not FunctionType:
        if isinstance(called, MethodType) or has_no_meaning(identity):
            raise Unlike
        return Kin(_itself(called) if isinstance(called, CODE) else identity, ())
    if type(identity) is not tuple or len(identity) != PARTS:
        raise Unlike
    code, _, fixed, captured, unset = identity
    if unset or len(captured) != len(function.captures):  # its captures are incomplete
        raise Unlike
    key: list[Hashable] = [CodeItself(code), *_from_outside(called)]
    values: dict[str, Any] = {}
    if fixed:
        given = defaults(called)
        for name, meaning in fixed:
            if may_differ(given[name]):
                values[name] = given[name]
                key.append((name, type(given[name])))
            else:
                key.append((name, _lasting(given[name], meaning)))
    for (name, meaning), capture in zip(captured, function.captures, strict=True):
        value = capture.frozen
        if may_differ(value) and name not in values and not capture.is_live:
            values[name] = value
            key.append((name, type(value)))
        elif not capture.is_live and is_kept(capture.original):
            key.append((name, _itself(capture.original)))
        else:
            of = _plain if capture.is_live else _lasting
            key.append((name, of(capture.original, meaning)))
    return Kin(tuple(key), tuple(values.items()))


def _lasting(value: Any, meaning: Any) -> Hashable:
    """Return the meaning of a value; code itself. Raise `Unlike` if it would keep other objects
    alive."""
    if isinstance(value, (*CODE, Enum)):
        if getattr(value, "__closure__", None):
            raise Unlike  # a reference to it would keep its captures alive, such as a database
        return _itself(value)
    return _plain(value, meaning)


def _itself(value: Any) -> Hashable:
    """Return a key that stands for an object by identity; raise `Unlike` if it has no weak
    reference."""
    if isinstance(value, MethodDescriptorType):
        return value  # has only a name
    if isinstance(value, attrgetter | itemgetter):  # two of these are never equal
        names: Any = value.__reduce__()[1]
        return (type(value), *[(type(name), name) for name in names])
    try:
        return Itself(value)
    except TypeError:
        raise Unlike from None


def _plain(value: Any, meaning: Any) -> Hashable:
    """Return the meaning of a value that is data at all depths; raise `Unlike` for other values."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset, dict):
        for each in [*value, *value.values()] if kind is dict else value:
            _plain(each, None)
    elif isinstance(value, (*CODE, Enum)):
        raise Unlike
    if has_no_meaning(meaning):
        raise Unlike
    return meaning  # type: ignore[no-any-return]


def has_no_meaning(meaning: Any) -> bool:
    """Return True if a meaning stands for an object that cannot be compared."""
    if type(meaning) is tuple or type(meaning) is frozenset:
        return any(map(has_no_meaning, meaning))
    return type(meaning) is object


def _from_outside(function: Any) -> Iterator[Hashable]:
    """Iterate over the modules that a function reads of its module; raise for undefined names."""
    module = function.__globals__
    names = global_names(function.__code__)
    if not REFLECTIVE.isdisjoint(names) or function.__builtins__ is not vars(builtins):
        raise Unlike
    for name in names:
        value = module.get(name, module)
        if isinstance(value, ModuleType):
            yield name, value
        elif value is module and name not in function.__builtins__:
            raise Unlike


def replace_captured_values(opaque: Opaque, values: Mapping[Any, Any]) -> Opaque:
    """Return a callable in which some variables have other values; the rest stay.

    Its `captures` are empty.
    """
    function = opaque.function
    if not values or not isinstance(function, FunctionType):
        return replace(opaque, captures=()) if opaque.captures else opaque
    cells = [
        CellType(values[name]) if name in values else cell
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
    ]
    names = {name: v for name, v in values.items() if name in function.__globals__}
    module = {**function.__globals__, **names} if names else function.__globals__
    made = FunctionType(function.__code__, module, function.__name__, None, tuple(cells) or None)
    fixed = {name: values.get(name, value) for name, value in defaults(function).items()}
    positional = len(function.__defaults__ or ())
    made.__defaults__ = tuple(fixed.values())[:positional] or None
    made.__kwdefaults__ = {name: fixed[name] for name in function.__kwdefaults__ or ()} or None
    identity = (opaque.identity, tuple(values.items()))
    return replace(opaque, function=made, captures=(), identity=identity)


# A part of a function as a function of its own, and the values of names in a function.

UNSET: Final[Any] = object()


def resolve(function: FunctionType, name: str) -> Any:
    """Return the value of a free name in a function; `UNSET` if it has none yet."""
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return UNSET
    if name in function.__globals__:
        return function.__globals__[name]
    builtins = function.__globals__.get("__builtins__", {})
    names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    return names.get(name, UNSET)


def part_of(
    node: ast.expr,
    parameters: list[str],
    function: FunctionType,
    origin: Opaque,
    bag: type | None = None,
) -> Opaque | None:
    """Return the part as a callable with the same globals and closure; None if it cannot be one.

    Two parts are equal if they are written alike in equal callables. With `bag`, the lists in its
    result are bags.
    """
    identity = (origin.identity, function.__code__, ast.dump(node), tuple(parameters), bag)
    run, given = folds.with_folds(node, parameters, lambda n: resolve(function, n), identity, bag)
    free = [n for n in function.__code__.co_freevars if n.isidentifier() and n not in parameters]
    free += given
    inner = ast.Lambda(_arguments(parameters), run)
    outer = ast.Expression(ast.Lambda(_arguments(free), inner))
    ast.copy_location(inner, node)
    ast.copy_location(outer.body, node)
    ast.fix_missing_locations(outer)
    try:
        module = compile(outer, function.__code__.co_filename, "eval", dont_inherit=True)
        code = _only(_only(module))
    except (SyntaxError, ValueError, RecursionError):
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in given.items()}
    closure: tuple[CellType, ...] = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, origin.name, None, closure or None)
    place = place_at(function.__code__.co_filename, node.lineno)
    name = ast.unparse(node)
    name = name if len(name) <= 40 else f"{name[:37]}..."
    return Opaque(made, len(parameters), name, place, (), identity, origin.role, is_part=True)


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _only(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))


class Queries(Protocol):
    """Reads parts of a callable before the reader reads them itself."""

    @property
    def shapes(self) -> Shapes:
        """The shapes of the current parameters of expressions."""
        ...

    def statements(self, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        """Return the statements of a function, with expressions for loops that fill collections."""
        ...

    def read(self, node: ast.expr, reader: Any) -> Expr | None:
        """Return a part as an expression; None for a part that reads no relation."""
        ...

    def value(self, node: ast.expr, reader: Any) -> Expr | None:
        """Return a part as an expression or as rows; None for a part that reads no relation."""
        ...

    def truth(self, node: ast.expr, reader: Any) -> Expr | bool:
        """Return a part as a test; its value, if only constants decide it in a query."""
        ...

    def after(self, name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt]) -> Expr | None:
        """Return the expression after an assignment; None if no relation is part of it."""
        ...

    def outer(self, expr: Expr) -> Expr:
        """Rewrite a value of a row around the whole callable to the query that is being read."""
        ...

    def check_kept(self, node: ast.expr, reader: Any) -> None:
        """Refuse a part that would be kept as a callable, if it reads relations."""
        ...
