"""Names of columns as names of fields: one rule for all borders.

    "unit price" -> unit_price    "class" -> class_    "2024" -> column_2024    "a", "a" -> a, a_2

What is no letter, digit or `_` becomes `_`, letters are those that Python reads (NFKC); a keyword
gets a `_`, a name that is there already a number, and one that begins with a digit or `__`,
`column_`. Where rows are named tuples, a name begins with no `_`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from keyword import iskeyword


def field_names(names: Iterable[str], *, of_tuple: bool = False, second: int = 2) -> list[str]:
    """Return names as names of fields, each once.

    Parameters
    ----------
    of_tuple: the fields are those of a named tuple.
    second: the number that the second field of a name gets.

    >>> field_names(["id", "unit price", "class", "2024", "id", ""])
    ['id', 'unit_price', 'class_', 'column_2024', 'id_2', 'column']
    >>> field_names(["_id", "a", "a"], of_tuple=True, second=1)
    ['id', 'a', 'a_1']
    """
    found: dict[str, None] = {}
    for name in names:
        plain = _identifier(name, of_tuple=of_tuple)
        number, free = second, plain
        while free in found:
            free, number = f"{plain}_{number}", number + 1
        found[free] = None
    return list(found)


def columns_of(fields: Iterable[str], columns: Sequence[str]) -> dict[str, int]:
    """Return the places of the columns of fields: the column of the same name, or else the one
    whose name as that of a field it is. Fields without a column are left out.

    Raises
    ------
    ValueError: several columns have the name of a field.

    >>> columns_of(["id", "unit_price", "from_"], ["unit price", "from", "other"])
    {'unit_price': 0, 'from_': 1}
    """
    wanted = list(fields)
    found = {name: columns.index(name) for name in wanted if name in columns}
    is_plain = len(found) == len(wanted) and len({*columns}) == len(columns)
    if is_plain:
        return found
    mended: dict[str, int] = {}
    for of_tuple in (True, False):
        mended |= {n: place for place, n in enumerate(field_names(columns, of_tuple=of_tuple))}
    for name in wanted:
        place = mended.get(name)
        if name not in found and place is not None and place not in found.values():
            found[name] = place
    taken = {*found.values()}
    for place, name in enumerate(columns):
        if name in found and place not in taken:
            raise ValueError(
                f"{len(columns)} columns of which several are called {name}\n"
                "  rename one of them, so that it is known which is the field"
            )
    return found


def _identifier(name: str, *, of_tuple: bool) -> str:
    letters = unicodedata.normalize("NFKC", name)
    plain = "".join(each if f"_{each}".isidentifier() else "_" for each in letters)
    if of_tuple:
        plain = plain.lstrip("_")
    if not plain.strip("_"):
        plain = "column"
    elif plain.startswith("__") or not plain.isidentifier():
        plain = f"column_{plain}"
    return plain + "_" * iskeyword(plain)
