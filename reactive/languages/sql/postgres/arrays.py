"""Arrays of Postgres, which are tuples; places are from 1 on."""

from __future__ import annotations

from typing import Any

from reactive.languages.sql.postgres.forms import joined_text

Array = tuple[Any, ...]


def element(array: Any, place: int) -> Any:
    """Return the element at a place, from 1 on; None where there is none."""
    return array[place - 1] if 0 < place <= len(array) else None


def slice_of(array: Array, first: int, last: int) -> Array:
    """Return the elements from one place to another."""
    return array[max(0, first - 1) : max(0, last)] if first <= last else ()


def concatenated(one: Array | None, other: Array | None) -> Array | None:
    """Concatenate arrays, or add one to an array of arrays; NULL adds nothing, sizes must fit."""
    if one is None or other is None:
        return other if one is None else one
    if not one or not other:
        return one or other
    depths = _depth(one), _depth(other)
    if depths[0] == depths[1] + 1:
        made: Array = (*one, other)
    elif depths[1] == depths[0] + 1:
        made = (one, *other)
    else:
        made = one + other
    if len({len(each) if isinstance(each, tuple) else -1 for each in made}) > 1:
        raise ValueError("cannot concatenate incompatible arrays")
    return made


def _depth(array: Any) -> int:
    """Return the number of dimensions of an array, by its first elements; 0 for other values."""
    depth = 0
    while isinstance(array, tuple):
        depth += 1
        array = array[0] if array else None
    return depth


def appended(array: Array | None, item: Any) -> Array:
    """Append an element (ARRAY_APPEND); NULL is the empty array."""
    return (*(array or ()), item)


def prepended(item: Any, array: Array | None) -> Array:
    """Prepend an element (ARRAY_PREPEND); NULL is the empty array."""
    return (item, *(array or ()))


def subscripts(array: Any, dimension: int) -> Array:
    """Return the places of a dimension (GENERATE_SUBSCRIPTS); none where there is none."""
    return tuple(range(1, (length(array, dimension) or 0) + 1))


def length(array: Any, dimension: int) -> int | None:
    """Return the length of a dimension (ARRAY_LENGTH); None where there is none."""
    if dimension < 1:
        return None
    for _ in range(dimension - 1):
        array = array[0] if isinstance(array, tuple) and array else None
    return len(array) or None if isinstance(array, tuple) else None


def lower_bound(array: Any, dimension: int) -> int | None:
    """Return the lower bound of a dimension (ARRAY_LOWER): 1, or None for no such dimension."""
    return None if length(array, dimension) is None else 1


def dimensions(array: Array) -> int | None:
    """Return the number of dimensions (ARRAY_NDIMS); None of an empty array."""
    return _depth(array) if array else None


def bounds(array: Array) -> str | None:
    """Return the bounds as a text (ARRAY_DIMS), such as `[1:2][1:3]`; None of an empty array."""
    if not array:
        return None
    found = [length(array, number) for number in range(1, _depth(array) + 1)]
    return "".join(f"[1:{each}]" for each in found)


def cardinality(array: Array) -> int:
    """Count all elements of all dimensions (CARDINALITY)."""
    return len(_leaves(array))


def position(array: Array | None, item: Any, start: int = 1) -> int | None:
    """Return the place of an element from `start` on (ARRAY_POSITION); NULL if there is none.

    An item of NULL finds the first NULL.
    """
    for place in range(max(0, start - 1), len(array or ())):
        if array is not None and array[place] == item:
            return place + 1
    return None


def positions(array: Array, item: Any) -> Array:
    """Return all places of an element (ARRAY_POSITIONS)."""
    return tuple(place for place, each in enumerate(array, 1) if each == item)


def without(array: Array, item: Any) -> Array:
    """Return an array without the elements equal to `item` (ARRAY_REMOVE)."""
    return tuple(each for each in array if each != item)


def exchanged(array: Array, old: Any, new: Any) -> Array:
    """Replace the elements equal to `old` by `new` (ARRAY_REPLACE)."""
    return tuple(new if each == old else each for each in array)


def shortened(array: Array, count: int) -> Array:
    """Return an array without its last `count` elements (TRIM_ARRAY); raise if it has fewer."""
    if not 0 <= count <= len(array):
        raise ValueError("number of elements to trim must be between 0 and the length")
    return array[: len(array) - count]


def filled(item: Any, sizes: Array) -> Array:
    """Return an array of copies of a value (ARRAY_FILL); raise if a size is NULL or negative."""
    made = item
    for each in reversed(sizes):
        if each is None or each < 0:
            raise ValueError("array size has to be positive")
        made = (made,) * each
    return made if isinstance(made, tuple) else ()


def contains_all(array: Array, items: Array) -> bool:
    """Return True if all of `items` are in `array` (`@>`); NULL is equal to nothing."""
    found = set(_leaves(array)) - {None}
    return all(each is not None and each in found for each in _leaves(items))


def contained_in(items: Array, array: Array) -> bool:
    """Return True if all of `items` are in `array` (`<@`)."""
    return contains_all(array, items)


def overlap(one: Array, other: Array) -> bool:
    """Return True if two arrays have an element in common (`&&`)."""
    return not (set(_leaves(one)) - {None}).isdisjoint(_leaves(other))


def nulls_among(*values: Any) -> int:
    """Count the arguments that are NULL (NUM_NULLS)."""
    return sum(value is None for value in values)


def values_among(*values: Any) -> int:
    """Count the arguments that are not NULL (NUM_NONNULLS)."""
    return sum(value is not None for value in values)


def joined_array(array: tuple[Any, ...], separator: str, null: str | None = None) -> str:
    """Join the elements as a text (ARRAY_TO_STRING); NULL is left out, or written as `null`."""
    found = (null if each is None else joined_text(each) for each in _leaves(array))
    return separator.join(each for each in found if each is not None)


def _leaves(array: tuple[Any, ...]) -> list[Any]:
    """Return the elements of an array of arrays, from all dimensions."""
    return [
        leaf for each in array for leaf in (_leaves(each) if isinstance(each, tuple) else [each])
    ]
