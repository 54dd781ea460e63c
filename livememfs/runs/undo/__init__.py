"""Undo: a run, and all that came after it, is taken back by a new run."""
