"""One chat call, and its reply as untrusted input.

Knows nothing of spaces or the bucket: text goes out, text comes back, and each reply is checked before it is used. Trio
thread only, unless a module says otherwise.
"""
