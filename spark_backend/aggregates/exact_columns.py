"""Sums of numbers as Spark columns, exact whatever the order in which Spark adds.

    integers    two sums: of the low 32 bits, and of what is above them
    floats      five sums of 32 bits each, with the point 96 bits from the right; the sum is rounded
                once, at the end, as `math.fsum` rounds it

A float that has no such limbs (NaN, an infinity, beyond 2**63, or with bits below 2**-96) is odd,
and so is an integer beyond 64 bits: it is kept as it is, and a group that has one is finished by
Python (`finishing.py`).

Sound:  limbs of a float are exact: each step takes off the integer that is nearest, and multiplies
        by a power of two. A decimal of 38 digits holds the bits that are rounded, 65 at least, and
        one more that says whether there was anything below them.
Cost:   a float takes roundings and products, no remainders, which processors take long for.
Source: superaccumulators; `parts/limbs.py` is the same in Python.
"""

from __future__ import annotations

INTEGER_LIMBS, FLOAT_LIMBS = 2, 5
LIMB, POINT = 32, 96
"""Bits of a limb, and behind the point of a float."""
BITS = 1 << LIMB
LARGEST = 2.0**63
"""What a float with limbs is below."""
_LOW = BITS - 1


def integer_limbs(value: str, name: str, *, may_be_odd: bool) -> dict[str, str]:
    """SQL of the limbs of an integer, `{name}_0` and `{name}_1`, least first; of one that may be
    beyond 64 bits also of `{name}_odd`: the integer if it is, else null."""
    fits = f"coalesce(try_cast({value} as bigint), 0L)" if may_be_odd else value
    found = {f"{name}_0": f"{fits} & {_LOW}L", f"{name}_1": f"shiftright({fits}, 32)"}
    if may_be_odd:
        found[f"{name}_odd"] = f"if(try_cast({value} as bigint) is null, {value}, null)"
    return found


def integer_sum(limbs: list[str]) -> str:
    """SQL of the sum: a decimal of 38 digits without places."""
    low, high = limbs
    return f"cast({high} as decimal(38, 0)) * {BITS} + cast({low} as decimal(38, 0))"


def integer_quotient(total: str, count: str) -> str:
    """SQL of an integer over a positive number of values of 64 bits, rounded once, as Python does
    it; null over none.

    The whole part has 53 bits or more where the total is no double itself: then what is left of it
    only says whether there was anything below. Otherwise 60 bits behind the point are divided on.
    """
    size, unit = f"abs({total})", 1 << 60
    point = f"cast({unit} as decimal(38, 0))"
    near = "cast(q.v * 2 + if(r.v > 0, 1, 0) as decimal(38, 0))"
    exact = f"cast((q.v * {point} + f.v) * 2 + if(e.v > 0, 1, 0) as decimal(38, 0))"
    value = (
        f"if(q.v >= {1 << 57}, cast({near} as double) * {2.0**-1!r}D,"
        f" cast({exact} as double) * {2.0**-61!r}D)"
    )
    for name, of in (
        ("f", f"(m.v - e.v) / {count}"),
        ("e", f"m.v % {count}"),
        ("m", f"r.v * {point}"),
        ("q", f"({size} - r.v) / {count}"),
        ("r", f"{size} % {count}"),
    ):
        value = _let(name, f"cast({of} as decimal(38, 0))", value)
    return (
        f"case when {count} <= 0 then null"
        f" when {size} <= {2**53} then cast({total} as double) / cast({count} as double)"
        f" else if({total} < 0, -1D, 1D) * {value} end"
    )


def _let(name: str, value: str, then: str) -> str:
    """SQL of `then`, in which `{name}.v` is a value that is worked out once."""
    bound = f"transform(array({value}), x -> named_struct('v', x))"
    return f"element_at(transform({bound}, {name} -> {then}), 1)"


def float_parts(value: str, name: str) -> dict[str, str]:
    """SQL of a float that has limbs, `{name}_good`, else 0, and of one that has none, `{name}_odd`,
    else null."""
    rest = value
    for _ in range(FLOAT_LIMBS - INTEGER_LIMBS):
        rest = _below(rest)
    is_good = f"abs({value}) < {LARGEST!r}D and {rest} = rint({rest})"
    return {
        f"{name}_good": f"if({is_good}, {value}, 0D)",
        f"{name}_odd": f"if({is_good}, cast(null as double), {value})",
    }


def float_limbs(value: str, name: str) -> dict[str, str]:
    """SQL of the limbs of a float that has some, `{name}_0` to `{name}_4`, least first: what is
    nearest to it of a limb, of the rest, and so on, each with a sign of its own."""
    rests = [value]
    for _ in range(FLOAT_LIMBS - INTEGER_LIMBS):
        rests.append(_below(rests[-1]))
    whole, *below = (f"cast(rint({rest}) as bigint)" for rest in rests)
    limbs = [*reversed(below), f"{whole} & {_LOW}L", f"shiftright({whole}, 32)"]
    return {f"{name}_{place}": limb for place, limb in enumerate(limbs)}


def _below(rest: str) -> str:
    """SQL of what is below the point, moved by a limb; exact, as floats near each other are."""
    return f"(({rest} - rint({rest})) * {BITS}D)"


def float_sum(limbs: list[str]) -> str:
    """SQL of the float that sums of limbs come to."""
    return _carried(limbs, "s", _of_sign(_carried(_sized("s"), "n", _rounded("n"))))


def _carried(limbs: list[str], name: str, then: str) -> str:
    """SQL of `then`, in which `{name}0.v` and so on are the limbs with 32 bits each, but the last,
    which has the sign: each gives on what it cannot hold."""
    carry = "0L"
    names = [f"{name}{place}" for place in range(len(limbs))]
    wholes = []
    for limb, of in zip(limbs, names, strict=True):
        wholes.append(f"{limb} + {carry}")
        carry = f"shiftright({of}.t, 32)"
    for place in reversed(range(len(limbs))):
        is_last = place == len(limbs) - 1
        value = "x" if is_last else f"x & {_LOW}L"
        bound = f"named_struct('t', x, 'v', {value})"
        given = f"transform(array({wholes[place]}), x -> {bound})"
        then = f"element_at(transform({given}, {names[place]} -> {then}), 1)"
    return then


def _sized(name: str) -> list[str]:
    """The limbs without the sign."""
    return [f"if({name}4.v < 0, -{name}{place}.v, {name}{place}.v)" for place in range(FLOAT_LIMBS)]


def _of_sign(size: str) -> str:
    return f"(if(s4.v < 0, -1D, 1D) * {size})"


def _rounded(name: str) -> str:
    """The size, of limbs that are not negative."""
    n = [f"{name}{place}.v" for place in range(FLOAT_LIMBS)]
    wide = [f"cast({part} as decimal(38, 0))" for part in n]
    highest = f"{wide[4]} * {2 * BITS} + {_with_rest(n[3], n[2], n[1], n[0])}"
    upper = (
        f"{wide[4]} * {2 * BITS * BITS} + {wide[3]} * {2 * BITS} + {_with_rest(n[2], n[1], n[0])}"
    )
    middle = f"{wide[3]} * {2 * BITS * BITS} + {wide[2]} * {2 * BITS} + {_with_rest(n[1], n[0])}"
    low = f"{wide[2]} * {BITS * BITS} + {wide[1]} * {BITS} + {wide[0]}"
    return (
        f"case when {n[4]} >= {1 << 58}L then cast({highest} as double) * {2.0**-1!r}D"
        f" when {n[4]} > 0 then cast({upper} as double) * {2.0**-33!r}D"
        f" when {n[3]} > 0 then cast({middle} as double) * {2.0**-65!r}D"
        f" else cast({low} as double) * {2.0**-96!r}D end"
    )


def _with_rest(limb: str, *below: str) -> str:
    """SQL of twice a limb, and one more if there is anything below: half of a unit is then seen."""
    return f"cast({limb} * 2 + if({' + '.join(below)} > 0, 1, 0) as decimal(38, 0))"
