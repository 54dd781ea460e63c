"""The index: records, words and vectors derived from the bucket, and what feeds them."""
