"""The names in generated code: those of its own, and those for what comes from a query.

    OWN        variables and functions that the lines are written with; some with numbers behind
    the rest   fields, parameters, captured values and callables, by the names that they have

A captured `weight` that was called so in a loop over `row, weight` would be another value. So what
comes from a query never has a name that is the code's own, which none is that begins with `_`.
"""

from __future__ import annotations

import builtins
import keyword

_WORDS = """
add add_key add_row add_sum_to_avg add_to_avg add_to_sum all alone_left alone_right also append
attempt avg_of Batch before below bounded canonical changed closed copied count counts Crowded
Decimal DecimalSum delta DOWN element empty error ExactSum find find_left find_right floats found
get group groups guard inside is_empty kept key keyed keys kind left left_group left_sum log made
Many Mark match_key meetings met new NO_MATCH note NOTHING nothing old once other out pair pairs
part plus plus_value repeated reraise REJECTED result right right_group right_sum rounds Row row
Rows rows rows_of scaled scaled_sum SEVERAL since size state sum sum_of sums times times_left
times_right times_sum times_value total turn UNIT UP was weight Weighted without zero
"""
OWN = frozenset(_WORDS.split())


def is_own(name: str) -> bool:
    """Whether generated code may have a variable or function of that name.

    >>> is_own("weight"), is_own("times_0_1"), is_own("row2"), is_own("price"), is_own("_weight")
    (True, True, True, False, False)
    """
    base = name.rstrip("_0123456789")
    return not base or base in OWN or name in OWN


def can_be_variable(name: str) -> bool:
    """Whether nothing in generated code has that name that is not the query's.

    >>> can_be_variable("price"), can_be_variable("weight"), can_be_variable("len")
    (True, False, False)
    """
    return not is_own(name) and not hasattr(builtins, name)


def apart(wish: str) -> str:
    """A name like that which is not the code's own, and no keyword.

    >>> apart("price"), apart("weight"), apart("class"), apart("1st")
    ('price', '_weight', '_class', '_1st')
    """
    is_odd = keyword.iskeyword(wish) or wish[0].isdigit() or is_own(wish)
    return f"_{wish}" if is_odd else wish
