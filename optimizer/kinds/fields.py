"""Fields of the classes of records, and the annotations of these fields.

Records are dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models.

Caches by class, whose entries are released with the class:

    @by_class                              facts of one class, in an attribute of the class
    @by_recent_class(64)                   found quickly, for calls with each row
    forms = ClassCache(Form, most=2048)    values by key, each released with its class
    @class_maker                           generated classes by name and columns, while in use

An entry of a dictionary, weak or not, that refers to its class keeps the class alive: programs that
define classes of rows again and again (a cell of a notebook, a query with other columns) would keep
every one of them. Facts in an attribute of the class form a cycle, which the garbage collector
frees.

Cost: 0.2 us per look-up; 0.04 us for recent classes, which are kept alive.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, wraps
from itertools import count
from types import GenericAlias, UnionType
from typing import Any, Generic, Self, TypeVar, get_type_hints
from weakref import WeakValueDictionary, ref

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")
FACTS = "__reactive_facts__"
IMMUTABLE = 1 << 8
"""The flag of classes that take no attributes: classes of Python and of libraries in C."""
WITHOUT_CLASS = frozenset({str, int, bool, float, bytes, type(None)})
"""Classes of parts of keys that have no class in them."""
MOST_OTHERS = 256
"""Results that a function caches for classes without attributes, and for other type forms."""
UNKNOWN: Any = object()
MOST_UNUSED = 64
"""Generated classes that stay without a use: the same query, made again, has the same class."""
TEMPORARY = 1 << 60
_namespace: Any = type.__dict__["__dict__"].__get__
_numbers = count()


class ClassFacts(dict[Any, Any]):
    """The facts of a class, by the function or cache that found them.

    owner: the class. A decorator that copies the attributes of a class (`slots=True`) copies its
    facts, which do not hold for the copy. number: of two classes, the one that is likely to be
    released first has the larger.
    """

    __slots__ = ("number", "owner")

    def __init__(self, owner: type) -> None:
        super().__init__()
        self.owner = owner
        self.number = next(_numbers) + (0 if _is_lasting(owner) else TEMPORARY)

    def __reduce__(self) -> Any:
        """Pickle a class by value (cloudpickle) without its facts."""
        return dict, ()


def _is_lasting(kind: type) -> bool:
    """Return True if a module has the class by its name, as long as no cell is run again."""
    module = sys.modules.get(kind.__module__)
    is_script = kind.__module__ == "__main__"
    return module is not None and not is_script and vars(module).get(kind.__qualname__) is kind


def facts_of(kind: Any) -> ClassFacts | None:
    """Return the facts of a class; None for one that takes no attributes, and for other type forms.

    >>> class Row: pass
    >>> facts_of(Row) is facts_of(Row), facts_of(int), facts_of(list[int])
    (True, None, None)
    """
    try:
        found: ClassFacts = _namespace(kind)[FACTS]
        if found.owner is kind:
            return found
    except TypeError:  # no class
        return None
    except (KeyError, AttributeError):
        pass
    if kind.__flags__ & IMMUTABLE:
        return None
    found = ClassFacts(kind)
    type.__setattr__(kind, FACTS, found)
    return found


def by_class(make: F) -> F:
    """Cache a function of a class, and of hashable options, in the class."""
    function: Any = make
    others = lru_cache(maxsize=MOST_OTHERS)(function)

    @wraps(function)
    def find(kind: Any, *options: Any) -> Any:
        if not options:
            try:
                known: ClassFacts = _namespace(kind)[FACTS]
                if known.owner is kind:
                    return known[find]
            except (KeyError, AttributeError, TypeError):
                pass  # no facts yet, or no class of the user
        facts = facts_of(kind)
        if facts is None:
            return others(kind, *options)
        key = (find, *options) if options else find
        found = facts.get(key, UNKNOWN)
        if found is UNKNOWN:
            found = facts.setdefault(key, function(kind, *options))
        return found

    return find  # type: ignore[return-value]


def by_recent_class(recent: int) -> Callable[[F], F]:
    """Cache a function by class, and find the results for the `recent` last classes quickly.

    These classes are kept alive.
    """

    def add_caches(make: F) -> F:
        return lru_cache(maxsize=recent)(by_class(make))  # type: ignore[return-value]

    return add_caches


def shortest_lived(kinds: Iterable[Any]) -> type | None:
    """Return the class with facts that is likely to be released first, or None.

    An entry about several classes is released with it. It is a class that no module has by its
    name, or that was seen last.
    """
    found: ClassFacts | None = None
    for kind in dict.fromkeys(kinds):
        facts = facts_of(kind)
        if facts is not None and (found is None or facts.number > found.number):
            found = facts
    return None if found is None else found.owner


def classes_in(key: Any, inside: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Iterate over the classes in a key: in its tuples, its types, and the parts that `inside`
    returns."""
    waiting = [key]
    while waiting:
        value = waiting.pop()
        kind: Any = type(value)
        if kind in WITHOUT_CLASS:
            continue
        if kind is tuple or kind is frozenset:
            waiting += value
        elif isinstance(value, type):
            yield value
        elif kind is GenericAlias or kind is UnionType:
            waiting.extend(value.__args__)
        else:
            waiting.extend(inside(value))


class ClassCache(Generic[V]):
    """A process-wide cache of the `most` values used last. An entry is released with its class.

    make: callable, the class or None -> a value.

    Sound: entries are found by the hashes of their keys, and the order of use has weak references
    to them alone, since their keys and values refer to classes. An entry whose place another hash
    has taken may be made again.

    Cost: 0.4 us for a cached value; the class is searched for when the value is made.
    """

    def __init__(self, make: Callable[[type | None], V], most: int) -> None:
        self._make = make
        self._most = most
        self._lock = threading.RLock()
        self._order: OrderedDict[int, _Reference] = OrderedDict()
        self._without_class: dict[int, _Entry] = {}

    def find(self, key: Hashable, home: Callable[[Any], type | None]) -> V:
        """Return the value of a key, made at first.

        Parameters
        ----------
        home: callable, key -> the class with which the value is released; called for a new value.
        """
        place = hash(key)
        while (reference := self._order.get(place)) is not None:
            entry = reference()
            if entry is None:
                break
            if entry.key == key:
                with suppress(KeyError):  # another thread has forgotten the entry
                    self._order.move_to_end(place)
                value: V = entry.value
                return value
            place += 1
        with self._lock:
            return self._make_value(key, hash(key), home(key))

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            while self._order:
                self._forget()

    def __len__(self) -> int:
        return len(self._order)

    def _make_value(self, key: Hashable, place: int, home: type | None) -> V:
        """Return the value of a key, made now unless another thread has made it."""
        while (reference := self._order.get(place)) is not None:
            entry = reference()
            if entry is None:
                break
            if entry.key == key:
                value: V = entry.value
                return value
            place += 1
        facts = None if home is None else facts_of(home)
        held = self._without_class if facts is None else facts.setdefault(self, {})
        made = held[place] = _Entry(key, self._make(home), held, place)
        self._order[place] = _Reference(made, self._remove_entry)
        while len(self._order) > self._most:
            self._forget()
        own: V = made.value
        return own

    def _remove_entry(self, reference: _Reference) -> None:
        """Remove the place of an entry that was released with its class, unless it was taken
        again."""
        if self._order.get(reference.place) is reference:
            del self._order[reference.place]

    def _forget(self) -> None:
        """Remove the oldest entry; do nothing more if its class no longer exists."""
        place, oldest = self._order.popitem(last=False)
        entry = oldest()
        if entry is not None:
            del entry.held[place]


class _Entry:
    """A value of a `ClassCache`, and the dictionary that holds it."""

    __slots__ = ("__weakref__", "held", "key", "place", "value")

    def __init__(self, key: Hashable, value: Any, held: dict[int, _Entry], place: int) -> None:
        self.key = key
        self.value = value
        self.held = held
        self.place = place


class _Reference(ref[_Entry]):
    """A weak reference to an entry, with its place."""

    __slots__ = ("place",)
    place: int

    def __new__(cls, entry: _Entry, gone: Callable[[_Reference], None]) -> Self:
        made = super().__new__(cls, entry, gone)
        made.place = entry.place
        return made


def class_maker(make: F) -> F:
    """Cache a function that generates classes: each as long as it is in use, and the last ones."""
    made: WeakValueDictionary[Any, Any] = WeakValueDictionary()
    lock = threading.RLock()

    @lru_cache(maxsize=MOST_UNUSED)
    @wraps(make)
    def find(*key: Any) -> Any:
        with lock:
            found = made.get(key)
            if found is None:
                found = made[key] = make(*key)
            return found

    return find  # type: ignore[return-value]


RECORDS = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__")
MODEL = "__pydantic_validator__"
TRACKED = "__reactive_tracked__"
"""Marks a class of tracked objects; rows are their snapshots, which equal themselves only."""
OURS = ("builtins", "abc", "typing", "attr", "attrs", "msgspec", "pydantic", "dataclasses")
"""Packages whose classes and metaclasses do nothing unexpected when an attribute is read."""


def is_record(kind: Any) -> bool:
    """Return True if `kind` is a class that declares its fields."""
    if not isinstance(kind, type):
        return False
    if hasattr(kind, TRACKED):
        return True
    if issubclass(kind, tuple):
        return isinstance(getattr(kind, "_fields", None), tuple)
    return any(hasattr(kind, name) for name in (*RECORDS, MODEL))


def members(kind: Any) -> list[str]:
    """Return the fields of a record, in the order of their declaration."""
    return [name for name, _ in _fields_with_comparison(kind)]


def compared_names(kind: Any) -> tuple[str, ...]:
    """Return the names of fields that `==` of a record class compares; none for other classes."""
    return tuple(name for name, is_compared in _fields_with_comparison(kind) if is_compared)


def _fields_with_comparison(kind: Any) -> list[tuple[str, bool]]:
    """Return the fields of a record, each with True if records are equal by it."""
    options = getattr(kind, TRACKED, None) if isinstance(kind, type) else None
    if options is None:
        return _declared_fields(kind)
    return [(name, False) for name in options.names(attributes(kind))]


def attributes(kind: Any) -> list[str]:
    """Return the attributes that a class declares: its fields, or by annotations and slots."""
    fields = [name for name, _ in _declared_fields(kind)]
    return fields if fields or dataclasses.is_dataclass(kind) else _written_down(kind)


def _written_down(kind: type) -> list[str]:
    """Return the attributes that a class and its bases annotate or list in slots; no `__x__`."""
    found: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        hints = inspect.get_annotations(base) if not is_ours(base) else {}
        found |= {name: None for name, hint in hints.items() if "ClassVar" not in str(hint)}
        slots = vars(base).get("__slots__", ())
        found |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    return [name for name in found if not name.startswith("__") and name != "_record_"]


def _declared_fields(kind: Any) -> list[tuple[str, bool]]:
    """Return the fields that a record class declares, each with True if `==` compares it."""
    if dataclasses.is_dataclass(kind):
        return [(field.name, field.compare) for field in dataclasses.fields(kind)]
    if hasattr(kind, "__attrs_attrs__"):
        return [(field.name, bool(field.eq)) for field in kind.__attrs_attrs__]
    declares = ["_fields"] if issubclass(kind, tuple) else ["__struct_fields__"]
    if hasattr(kind, MODEL):
        declares.append("model_fields")
    found = [getattr(kind, name, None) for name in declares]  # of a metaclass: a descriptor
    return [(name, True) for names in found if isinstance(names, tuple | dict) for name in names]


def hints(kind: type) -> dict[str, Any]:
    """Return the annotations of the fields, evaluated; none if that cannot be done, or not yet."""
    try:
        return _hints(kind)
    except Exception:  # evaluating an annotation may raise any exception
        return {}


def annotations_with_metadata(kind: type) -> dict[str, Any]:
    """Return the annotations of a class with the metadata of `Annotated`."""
    try:
        return _hints(kind, True)
    except Exception:  # as above
        return {}


def as_written(kind: type) -> dict[str, Any]:
    """Return the annotations of a class as written; some may be text."""
    bases = reversed(kind.__mro__)
    return {n: hint for base in bases for n, hint in vars(base).get("__annotations__", {}).items()}


def returned_by(function: Any) -> Any:
    """Return the annotation of a function's result, `Any` if there is none or not yet.

    >>> returned_by(is_record), returned_by(lambda: 1)
    (<class 'bool'>, typing.Any)
    """
    try:
        return get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return Any


@by_class
def _hints(kind: type, extras: bool = False) -> dict[str, Any]:
    """Return the evaluated annotations of the fields of a class; raise if one cannot be
    evaluated."""
    found = get_type_hints(kind, include_extras=extras)
    return {name: found[name] for name in members(kind) if name in found}


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in OURS
