"""The operators of the graph: each turns the deltas of its inputs into the delta of its output.

Lives here:  one file per operator, whose header states the law, the state and the cost; those with
             loops that are generated (`generated/`), and recursion (`fixpoint/`).
Comes in:    deltas, and the plan nodes that an operator is made of.
Goes out:    deltas, which `undo` takes back and `commit` makes final.
May import:  `storage`, `codegen`, `collections`, `runtime`.
"""
