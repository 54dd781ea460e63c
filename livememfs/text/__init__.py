"""Texts, whoever wrote them: Markdown, front matter, merging, sizes, private parts, facts.

Pure: nothing here knows the bucket, and any thread may call it.
"""
