"""Operators whose loops are generated from the expressions of a plan.

    chain of where, select, unnest  +  their sink        ->    one function, one loop

Each does what the plain operators do, and keeps these beside it: if generated code raises, its
changes are undone and the plain operators repeat the delta, which raises what the user's code
raises, or finds that the query ignores the error for these rows (`join.py`).
"""
