"""What the objects in the bucket mean: keys, names, notes, spaces and rules.

Pure values and functions: no I/O, no clock of its own, no trio. Imports nothing of this package but `errors`.
Everything here may be called from any thread.
"""
