"""Undo: a new run takes back a run and all runs after it."""
