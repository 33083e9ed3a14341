"""What the engine needs of the interpreter and its process: locks, signals, threads, tracebacks.

Lives here:  the lock of a database, Ctrl-C, timers, the garbage collector, frames that are hidden.
Comes in:    the calls of all rooms above.
Goes out:    errors that show the user's own frames; a lock that is left in line.
May import:  `errors`, `optimizer`.
"""
