"""The doubles livememfs ships: a store that fails on demand, a clock that stands still, models that answer by a script.

They are part of the public package: programs that build on livememfs can test against them, too. Import them from their
own modules (`livememfs.testing.store`, `livememfs.testing.clock`); this module imports nothing. Servers that only our
own tests and measurements need are in `tests/`: `tests/moto_s3.py`, `tests/proxy`.
"""
