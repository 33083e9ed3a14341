"""Services of the interpreter and the process: locks, signals, threads, tracebacks.

Lives here:  the lock of a database, Ctrl-C, timers, the garbage collector, hidden stack frames.
Comes in:    the calls of all rooms above.
Goes out:    errors that show the user's own frames; a lock that is released inline.
May import:  `errors`, `optimizer`.
"""
