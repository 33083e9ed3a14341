"""From a callable to an expression.

Lives here: how sources are read, and why some cannot be.
Comes in:   `Opaque`.
Goes out:   `Lifted`.
May import: `callables`, `expressions`.
"""
