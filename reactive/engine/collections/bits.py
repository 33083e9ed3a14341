"""Sets of small numbers as the bits of integers, in blocks: block -> which of its numbers are in.

    {3, 5, 2049}        {0: 0b101000, 2: 0b10}          with WIDTH = 1024

A block takes a bit per number, and one that is empty nothing, so that sets of any density are as
small as the smaller of a bit set and a dictionary of their members. Sets that somebody keeps are
never changed: what changes one makes another. So to undo a change is to put the old one back.

State:  a dictionary entry and up to WIDTH bits per block that has a member.
Cost:   O(blocks) for what two sets have in common, or not; O(1) to ask for one member.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

WIDTH = 1024
"""Numbers of a block."""
SPARSE = 12
"""Of that many numbers one is a member: where fewer are, they are looked for one by one."""
Bits = dict[int, int]
EMPTY: Bits = {}
_ONES = bytes.maketrans(b"01", b"\x00\x01")


def has(bits: Bits, number: int) -> int:
    """Whether a number is a member.

    >>> has({0: 0b101}, 2), has({0: 0b101}, 1)
    (1, 0)
    """
    return bits.get(number // WIDTH, 0) >> number % WIDTH & 1


def put(bits: Bits, number: int) -> None:
    """Make a number a member; of a set that nobody else has."""
    block = number // WIDTH
    bits[block] = bits.get(block, 0) | 1 << number % WIDTH


def put_all(bits: Bits, more: Bits) -> None:
    """The same for all members of another set."""
    for block, members in more.items():
        bits[block] = bits.get(block, 0) | members


def joined(bits: Bits, more: Bits) -> Bits:
    """The members of either.

    >>> joined({0: 0b1}, {0: 0b10, 7: 0b1})
    {0: 3, 7: 1}
    """
    found = bits.copy()
    put_all(found, more)
    return found


def without(bits: Bits, gone: Bits) -> Bits:
    """The members that are not in the other one.

    >>> without({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
    {0: 1}
    """
    found = bits.copy()
    for block, members in gone.items():
        left = found.get(block, 0) & ~members
        if left:
            found[block] = left
        else:
            found.pop(block, None)
    return found


def gained(now: Bits, before: Bits) -> Bits:
    """The same, of sets that have most blocks in common.

    >>> gained({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
    {0: 1}
    """
    found: Bits = {}
    for block, members in now.items():
        old = before.get(block, 0)
        if members is not old and (more := members & ~old):
            found[block] = more
    return found


def count(bits: Bits) -> int:
    """How many members there are.

    >>> count({0: 0b101, 7: 0b1})
    3
    """
    return sum(map(int.bit_count, bits.values()))


def picked(bits: Bits, values: Sequence[Any]) -> list[Any]:
    """Of values in their order, those at the places that are members.

    >>> picked({0: 0b101}, "abc")
    ['a', 'c']
    """
    found: list[Any] = []
    for block, members in bits.items():
        start, length = block * WIDTH, members.bit_length()
        if not members & (members - 1):
            found.append(values[start + length - 1])
        elif members.bit_count() * SPARSE < length:
            while members:
                lowest = members & -members
                found.append(values[start + lowest.bit_length() - 1])
                members ^= lowest
        else:
            are_in = bin(members)[:1:-1].encode().translate(_ONES)
            found += compress(values[start : start + length], are_in)
    return found
