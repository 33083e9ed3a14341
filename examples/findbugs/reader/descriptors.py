"""Descriptors and names as class files write them: checked and taken apart.

Source: the Java Virtual Machine Specification, sections 4.2 and 4.3.
"""

from __future__ import annotations

import re
import sys
from typing import TypeAlias

from examples.findbugs.reader.cursor import Malformed, shown

Signature: TypeAlias = tuple[tuple[str, ...], str]
"""The descriptors of a method's parameters and of its result."""

_CLASS = r"[^.;\[/]++(?:/[^.;\[/]++)*+"
_FIELD = rf"\[{{0,255}}+(?:[BCDFIJSZ]|L{_CLASS};)"
CLASS = re.compile(_CLASS)
FIELD = re.compile(_FIELD)
METHOD = re.compile(rf"\(((?:{_FIELD})*+)\)({_FIELD}|V)")
FIELD_NAME = re.compile(r"[^.;\[/]+")
METHOD_NAME = re.compile(r"[^.;\[/<>]+|<init>|<clinit>")
SLOTS = 255
"""The most words of the parameters of a method."""


def signature(descriptor: str) -> Signature:
    """Return the parameters and the result of a method.

    >>> signature("(I[Ljava/lang/String;)V")
    (('I', '[Ljava/lang/String;'), 'V')
    """
    match = METHOD.fullmatch(descriptor)
    if match is None:
        raise Malformed(f"{shown(descriptor)} is no descriptor of a method")
    params = tuple(map(sys.intern, FIELD.findall(match[1])))
    if len(params) + params.count("J") + params.count("D") > SLOTS:
        raise Malformed(f"{shown(descriptor)} has more parameters than a method may have")
    return params, sys.intern(match[2])


def field_type(descriptor: str) -> str:
    """Return the descriptor itself, if it is one of a field.

    >>> field_type("[I")
    '[I'
    """
    if FIELD.fullmatch(descriptor) is None:
        raise Malformed(f"{shown(descriptor)} is no descriptor of a field")
    return descriptor


def class_name(name: str) -> str:
    """Return the name itself, if it is one of a class or the descriptor of an array."""
    pattern = FIELD if name.startswith("[") else CLASS
    if pattern.fullmatch(name) is None:
        raise Malformed(f"{shown(name)} is no name of a class")
    return name


def field_name(name: str) -> str:
    """Return the name itself, if a field may have it."""
    if FIELD_NAME.fullmatch(name) is None:
        raise Malformed(f"{shown(name)} is no name of a field")
    return name


def method_name(name: str) -> str:
    """Return the name itself, if a method may have it."""
    if METHOD_NAME.fullmatch(name) is None:
        raise Malformed(f"{shown(name)} is no name of a method")
    return name
