"""What a text is, whoever wrote it: Markdown, front matter, merging, sizes, what is private in it, the facts in it.

Pure: nothing here knows the bucket, and any thread may call it.
"""
