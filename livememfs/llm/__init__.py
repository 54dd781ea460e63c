"""One chat call, and its reply as untrusted input.

Knows nothing of spaces or the bucket: text goes out, text comes back, and whatever comes back is checked before anyone
believes it. Trio thread only, unless a module says otherwise.
"""
