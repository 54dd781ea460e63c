"""Consolidation: notes become files of the bank."""
