"""Object stores: what a bucket is to livememfs, and the kinds of bucket it can stand on.

`base` has the protocol, its records and conditions; `memory`, `directory` and `s3` implement it; `retry` wraps any of
them; `capabilities` asks a store which of its promises hold. Refuses to know what an object means.
"""
