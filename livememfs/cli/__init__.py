"""The command line: one module per group of commands, assembled in `main`.

Owns what people and scripts see: prose, tables, `--json`, exit codes. Decides nothing about memory itself; every
command is a thin user of the same layers that a mount uses.
"""
