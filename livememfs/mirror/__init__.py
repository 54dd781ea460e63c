"""A plain directory that is kept equal to the tree, both ways, without FUSE."""
