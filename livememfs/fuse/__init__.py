"""The adapter between the kernel and the tree.

The only package that imports pyfuse3. It translates and bounds; what a name means is the tree's business.
"""
