"""The borders: adapters between tables and views, and files, servers, frames and objects.

Lives here:  a package for each border. Any of them can be left out: see `engine/runtime/needs.py`.
Comes in:    files, servers, frames, objects and clusters of others.
Goes out:    commits of tables; changes of views.
May import:  `optimizer`, `engine`, `api`.
"""
