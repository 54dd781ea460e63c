"""The parts of the folder store: where things lie (`layout`), how bytes reach the disk (`disk`), what is remembered
about a version (`sidecar`), what a listing sees (`walk`), who may write (`locks`) and the whole of it (`files`).

All of it is synchronous and knows no trio; `livememfs.store.directory` calls it from worker threads.
"""
