"""From a callable to an expression.

Lives here: what syntax means as an expression, and why some has none.
Comes in:   `Opaque`.
Goes out:   `Lifted`.
May import: `callables`, `expressions`.
"""
