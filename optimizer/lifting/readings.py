"""What callables of one code have in common, whoever made them: they are read once.

    select(lambda o: (o.id, o.total))       made twice: one code, one expression
    where(lambda o: o.total > limit)        made twice: one expression, another constant in it

Sound:  a callable that captures nothing, has no defaults and names nothing but built-in functions
        is its code, and code is told apart by identity. One that captures plain values is read with
        slots in their place (`expr.Slot`), which note whether a value was asked for: then what it
        was read as is that of these values alone.
State:  of the process, what codes were read as, of the last 2048 for arguments of some classes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable
from types import FunctionType, MethodType
from typing import Any

from optimizer.callables.loads import defaults, global_names
from optimizer.callables.opaque import Opaque
from optimizer.callables.same_code import CodeItself
from optimizer.expr import Apply, Constant, Expr, Held, Slot, constant, transform, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.kinds.class_facts import ClassCache, classes_in, shortest_lived
from optimizer.lifting.kin import Itself, Kin, kin_of, with_values

Reading = tuple[Expr, tuple[str, ...]]
"""An expression, and the names of its parameters."""
Read = Callable[[Opaque, Shapes], Reading]
UNREAD: Any = object()
READ = "reading"
MOST_READINGS = 2048


def remembered(function: Opaque, shapes: Shapes, read: Read) -> Reading:
    """What a callable was read as for arguments of these shapes, or is read as now."""
    found: Reading | None = function.readings.get(shapes)
    if found is None:
        known = of_code(function, shapes)
        found = known.get(READ) or _of_kin(function, shapes, read) or read(function, shapes)
        if is_whole(found):
            function.readings[shapes] = known[READ] = found
    return found


def is_whole(reading: Reading) -> bool:
    """Whether no part is kept as a callable, which tells what it is for."""
    return not any(isinstance(part, Apply) for part in walk(reading[0]))


def of_all_kin(function: Opaque, shapes: Shapes, read: Read) -> Reading | None:
    """What all callables that differ from one in plain values are read as: with slots in their
    place. None if the values decide how, or there are none."""
    kin = kin_of(function)
    if kin is None or not kin.values:
        return None
    known = _readings(kin.key, shapes)
    found: Reading | None = known.get(READ, UNREAD)
    if found is UNREAD:
        found = known[READ] = _with_slots(function, kin, shapes, read)
    return found


def _with_slots(function: Opaque, kin: Kin, shapes: Shapes, read: Read) -> Reading | None:
    held = {name: Held(value) for name, value in kin.values}
    found = read(with_values(function, held), shapes)
    is_general = is_whole(found) and not any(each.is_asked for each in held.values())
    if not is_general or any(map(_holds_code, walk(found[0]))):
        return None
    names = {id(each): name for name, each in held.items()}

    def named(part: Expr) -> Expr:
        return Slot(Held(names[id(part.held)]), part.name) if isinstance(part, Slot) else part

    return transform(found[0], named), found[1]


def _holds_code(part: Expr) -> bool:
    """Whether it is a function of the user's, which knows its module."""
    return type(part) is Constant and isinstance(part.value, FunctionType | MethodType)


def _of_kin(function: Opaque, shapes: Shapes, read: Read) -> Reading | None:
    """The reading of a callable, made of that of all its kin."""
    found = of_all_kin(function, shapes, read)
    if found is None:
        return None
    kin = kin_of(function)
    assert kin is not None
    values = dict(kin.values)

    def own(part: Expr) -> Expr:
        return constant(values[part.held.value], part.name) if type(part) is Slot else part

    return transform(found[0], own), found[1]


def of_code(function: Opaque, shapes: Shapes) -> dict[str, Any]:
    """Return the facts of all callables of the code of one, for arguments of these shapes; none of
    a callable that is more than its code."""
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
    return _READINGS.find((key, shapes), _home)


def _home(key: Hashable) -> type | None:
    return shortest_lived(classes_in(key, _inside))


def _inside(value: Any) -> tuple[Any, ...]:
    return (value.value,) if type(value) is Itself else ()


_READINGS: ClassCache[dict[str, Any]] = ClassCache(lambda _: {}, MOST_READINGS)
