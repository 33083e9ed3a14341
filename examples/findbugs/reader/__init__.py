"""The parts of a class file, each read by a module of its own for `classfile.py`."""
