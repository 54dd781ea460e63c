"""The command line: one module per group of commands, assembled in `main`.

Owns what people and scripts see: sentences, tables, `--json`, exit codes. Decides nothing about memory itself: every
command calls the same layers as a mount.
"""
