"""The sources: one module for each form in which memory comes, and the table of their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livememfs.importing.item import Reader
from livememfs.importing.sources import (
    basic_memory,
    buckets,
    chatgpt,
    claude_code,
    claude_mem,
    codex,
    jsonlines,
    markdown,
    mem0,
    memory_bank,
)


@dataclass(frozen=True)
class Source:
    """A form that can be read. `takes` says what its path is, for the help."""

    name: str
    takes: str
    read: Reader


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source("markdown", "a folder of Markdown and text files, or one file", markdown.read),
        Source("jsonl", "a file with a JSON object in each line", jsonlines.read),
        Source("memory-bank", "the memory-bank folder of a project", memory_bank.read),
        Source("basic-memory", "a folder of basic-memory", basic_memory.read),
        Source("mem0", "an export of mem0, a JSON file, or its history.db", mem0.read),
        Source("live-memory", "a space: a folder or .tar.gz of a bucket, a backup or an export", buckets.read),
        Source("claude-code", "its folder (~/.claude), one transcript, or a folder of memories", claude_code.read),
        Source("codex", "its folder (~/.codex), or one rollout", codex.read),
        Source("chatgpt", "an export: its .zip, its folder, or conversations.json", chatgpt.read),
        Source("claude-mem", "its folder (~/.claude-mem), or its database", claude_mem.read),
    )
}
