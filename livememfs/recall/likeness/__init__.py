"""Likeness: whether two texts state the same fact."""
