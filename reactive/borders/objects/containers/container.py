"""What lists, dictionaries and sets that are tracked have in common: who owns them.

    order  <--  order.lines  <--  order.lines[3]         each knows those that it is in, weakly

    order.lines[3].append(x)      order is asked to make the change: it holds the lock of its
                                  database, calls what changes the list, keeps what takes it back
                                  marks `order.lines` at place 3, and `order` at `lines`

A container that is in several objects, or several times in one, tells all of them. One that was
taken out tells nobody: whether an owner still holds it is asked before each change. Until the end
of the transaction that took it out what changes it is noted there too: it may be put back.

State:  of each container its owners, weakly, and what changed since its last snapshot.
Cost:   of a change, that of its owners.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.fields import TRACKED, by_recent_class
from reactive.engine.collections.zset import EXACT

Undo = Callable[[], object]
Change = Callable[[], Undo | None]
"""Changes something, and gives what takes it back; None if nothing has changed."""
Leaf = Callable[[Any, Any], Any]
"""What a snapshot holds of a value that is no container, which is in the container given next."""
FEW, NOTED = 64, 8
"""If more changes than these, and one for so many values, are noted, a snapshot is made anew."""


class Owner(Protocol):
    """An object that has containers, or a container."""

    def with_owners(self, found: dict[int, Any]) -> object:
        """Add the objects whose snapshots hold its own, and itself if it is one, by their `id`."""

    def holds(self, key: Hashable, value: Any) -> bool:
        """Whether a value is still where it was told to be."""

    def mark(self, key: Hashable, value: Any) -> None:
        """A value that it holds has changed inside; so have all owners. It cannot fail."""

    def is_in_transaction(self) -> bool:
        """Of an object: whether a transaction of a database that has it is open."""

    @staticmethod
    def change_all(objects: Sequence[Any], do: Change) -> None:
        """Change what is in some objects, which `with_owners` found, as one commit, or as part of
        the transaction that is open.

        It calls `do` under the locks of their databases, once, and what that gave to take it back
        if the transaction fails, or else the commit.
        """


class Container:
    """Base of the containers that are tracked."""

    __slots__ = ()
    PLAIN: ClassVar[type]
    FROZEN: ClassVar[type]
    _counts: dict[int, int]
    _frozen: Any
    _owners: dict[tuple[int, Hashable], weakref.ref[Any]]
    _stale: dict[int, Any]

    def freeze(self, leaf: Leaf) -> Any:
        """What it holds now, as an immutable value. It is the same object until it changes."""
        raise NotImplementedError

    def anew(self, leaf: Leaf) -> Any:
        """The same, made of what is there, whether changes were told or not."""
        raise NotImplementedError

    def forget(self) -> None:
        """Make the next snapshot of what is there."""
        self._frozen, self._counts = None, {}  # type: ignore[misc]
        every = self._values()
        count(self._counts, every, 1)
        for value in every:
            if isinstance(value, Container):
                value.forget()

    def with_owners(self, found: dict[int, Any]) -> bool:
        """As `Owner` says; whether it, or a container that it is in, has been taken out of one."""
        is_loose = False
        for number, reference in tuple(self._owners.items()):
            owner, key = reference(), number[1]
            if owner is None:
                self._owners.pop(number, None)
            elif not owner.holds(key, self):
                is_loose = True
            elif id(owner) not in found:
                is_loose |= owner.with_owners(found) is True
        return is_loose

    def holds(self, key: Hashable, value: Any) -> bool:
        """As `Owner` says."""
        return id(value) in self._counts

    def mark(self, key: Hashable, value: Any) -> None:
        """As `Owner` says."""
        self._stale[id(value)] = value
        self._tell()

    def own(self, owner: Any, key: Hashable) -> None:
        """It is in an owner from now on."""
        self._owners[id(owner), key] = weakref.ref(owner)

    def follows_any(self) -> bool:
        """Whether it holds anything that tells when it changes."""
        return bool(self._counts)

    def is_of(self, owner: Any, key: Hashable) -> bool:
        """Whether it knows that it is in an owner."""
        found = self._owners.get((id(owner), key))
        return found is not None and found() is owner

    def _blank(self) -> None:
        """It has just been made."""
        self._frozen = None
        self._owners, self._stale, self._counts = {}, {}, {}  # type: ignore[misc]

    def _held_by(self) -> Iterator[tuple[Any, Hashable]]:
        """Its owners, each with where in there it is."""
        return ((owner, key) for owner, key in self._owned_by() if owner.holds(key, self))

    def _owned_by(self) -> Iterator[tuple[Any, Hashable]]:
        """The same, and those that it was taken out of not long ago."""
        for number, reference in list(self._owners.items()):
            owner = reference()
            if owner is None:
                self._owners.pop(number, None)
            else:
                yield owner, number[1]

    def _may_return_to(self) -> dict[int, Any]:
        """The objects that it may be put back into; if there are none, it is told so."""
        found: dict[int, Any] = {}
        seen, every = {id(self)}, [self]
        while every:
            for owner, _ in every.pop()._owned_by():
                if not isinstance(owner, Container):
                    if owner.is_in_transaction():
                        found[id(owner)] = owner
                elif id(owner) not in seen:
                    seen.add(id(owner))
                    every.append(owner)
        if not found:
            held = {(id(owner), key) for owner, key in self._held_by()}
            for number in self._owners.keys() - held:
                self._owners.pop(number, None)
        return found

    def _tell(self) -> None:
        """It has changed."""
        for (_, key), reference in tuple(self._owners.items()):
            owner = reference()
            if owner is not None and owner.holds(key, self):
                owner.mark(key, self)

    def _change(self, do: Change) -> None:
        """Change it, with those who own it."""
        found: dict[int, Any] = {}
        if self._owners and self.with_owners(found):
            found |= self._may_return_to()
        if found:
            objects = list(found.values())
            objects[0].change_all(objects, partial(self._changed, do))
        else:
            do()

    def _changed(self, do: Change) -> Undo | None:
        """Change it. What takes that back keeps the objects followed that the change takes out."""
        before = self._frozen
        undo = do()
        return None if undo is None else partial(_taken_back, undo, before)

    def _values(self) -> Iterable[Any]:
        """What is in it, but keys."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.PLAIN, (self.PLAIN(self),)


@by_recent_class(64)
def follows(kind: Any) -> bool:
    """Whether values of a class tell those that have them when they change."""
    return issubclass(kind, Container) or hasattr(kind, TRACKED)


def is_much(changes: int, size: int) -> bool:
    """Whether making the snapshot of a container anew is quicker than to change the last one."""
    return changes > FEW + size // NOTED


def count(counts: dict[int, int], values: Iterable[Any], by: int) -> None:
    """Count those of some values that tell when they change."""
    for value in values:
        if value.__class__ not in EXACT and follows(value.__class__):
            number = id(value)
            now = counts.get(number, 0) + by
            if now > 0:
                counts[number] = now
            else:
                counts.pop(number, None)


def tracked(value: Any) -> Any:
    """A plain container, or what a row shows of one, as one that is tracked; anything else as it
    is."""
    kind = value.__class__
    if kind is list or kind is dict or kind is set or issubclass(kind, Foldable):
        for each in Container.__subclasses__():
            if kind is each.PLAIN or kind is each.FROZEN:
                return each(value)  # type: ignore[call-arg]
    return value


def taken(value: Any, owner: Container) -> Any:
    """A value that is put into a container: tracked itself, if it is a plain container.

    Raises
    ------
    ValueError: it would hold itself.
    """
    if value.__class__ in EXACT:
        return value
    value = tracked(value)
    if isinstance(value, Container) and _is_in(value, owner):
        raise ValueError(
            f"a {value.PLAIN.__name__} in an object that is tracked cannot hold itself: a snapshot "
            "of it would not end\n  put in a copy"
        )
    return value


def shown(value: Any, owner: Container, leaf: Leaf) -> Any:
    """What a snapshot holds of a value in a container."""
    if value.__class__ in EXACT:
        return value
    if isinstance(value, Container):
        return value.freeze(leaf)
    return leaf(value, owner)


def shown_anew(value: Any, owner: Container, leaf: Leaf) -> Any:
    """The same, made of what is there."""
    return value.anew(leaf) if isinstance(value, Container) else shown(value, owner, leaf)


def _taken_back(undo: Undo, before: Any) -> None:
    """Take a change back of what had a snapshot before, by which its objects are followed."""
    undo()


def _is_in(value: Container, owner: Any) -> bool:
    """Whether a container is, or is in, another one."""
    if owner is value:
        return True
    if not isinstance(owner, Container):
        return False
    return any(_is_in(value, each) for each, _ in owner._held_by())
