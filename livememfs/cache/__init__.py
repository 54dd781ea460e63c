"""The local side of the bucket: what tree, pipelines and recall see of it."""
