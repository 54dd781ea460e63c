"""Runs change a space as one: they wait in a queue, are committed in the ledger, and can be taken back.

This folder has what all kinds of run share; each kind has a folder of its own, which no other one imports. `kinds`
alone names those that a model is asked for.
"""
