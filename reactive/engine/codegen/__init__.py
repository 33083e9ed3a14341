"""From expressions to functions: source text that one can read, compiled.

Lives here:  the writer of expressions, the body of a loop, what takes its rows, names in the code.
Comes in:    expressions (`optimizer.expr`) and chains of linear plan nodes.
Goes out:    Python functions, and their source.
May import:  `collections`, `runtime`.
"""
