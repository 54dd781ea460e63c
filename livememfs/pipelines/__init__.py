"""Work that changes the bucket in several steps: making and removing spaces, writing notes, consolidating.

Each step leaves the bucket in a state that the next call, or another host, can go on from. Reaches objects through
`cache.replica.Replica` only. Trio thread only.
"""
