"""The tree over WebDAV, for machines that can mount nothing else: the acts, their resources, the server."""
