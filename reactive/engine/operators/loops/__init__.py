"""Operators whose loops are generated from the expressions of a plan.

    chain of where, select, unnest  +  their sink        ->    one function, one loop

Each does what the plain operators do, which it keeps beside it: when generated code raises, what it
did is undone, and the plain operators do the same delta again, to raise what the user's own code
raises, or to find the rows for which that does not count (`join.py`).
"""
