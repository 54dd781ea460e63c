"""The meaning of the objects in the bucket: keys, names, notes, memories, spaces, rules.

Pure values and functions: no I/O, no clock, no trio. Any thread may call everything here.
"""
