"""The span of a symbol: what changes its digest, and what does not."""

from __future__ import annotations

import time

import pytest

from livememfs.code.naming import symbols_in
from livememfs.code.span import SourceText

PYTHON = '''import os


@cached
def load(path, deep={}):
    """Read it."""
    for line in open(path):
        yield line

    return None


class Store:
    LIMIT = 5

    def load(self):
        return 1


def other():
    return load("x")
'''
GO = """package a

func (s *Server) Start(port int) error {
	if port == 0 {
		return nil
	}
	return s.run()
}

func Stop() {
}
"""
TYPESCRIPT = """export const retries = 3;

export async function fetchAll(
  urls: string[],
): Promise<void> {
  for (const url of urls) {
    await fetchOne(url);
  }
}

class Client {
  send(message) {
    return message;
  }
}
"""
C = """static int parse(const char *s)
{
    return atoi(s);
}

int main(void)
{
    return parse("1");
}
"""
YAML = """server:
  port: 80
  hosts:
  - a
  - b
timeout: 5
"""
RUST = """#[derive(Debug)]
pub struct Config {
    pub name: String,
}

impl Config {
    pub fn read(path: &str) -> Self {
        todo!()
    }
}

fn other() {}
"""


def digest(text: str, symbol: str) -> str:
    return SourceText(text.encode()).digest(symbol)


@pytest.mark.parametrize(
    ("text", "symbol", "inside", "outside"),
    [
        (PYTHON, "load", "yield line", "import os"),
        (PYTHON, "load", "return 1", 'load("x")'),
        (PYTHON, "load", "@cached", "LIMIT = 5"),
        (PYTHON, "load", "return None", "class Store"),
        (PYTHON, "Store", "return 1", "return None"),
        (PYTHON, "LIMIT", "LIMIT = 5", "return 1"),
        (PYTHON, "other", '"x"', "LIMIT = 5"),
        (GO, "Start", "return nil", "func Stop"),
        (GO, "Stop", "func Stop", "return nil"),
        (TYPESCRIPT, "retries", "= 3", "fetchOne"),
        (TYPESCRIPT, "fetchAll", "fetchOne", "= 3"),
        (TYPESCRIPT, "fetchAll", "string[]", "return message"),
        (TYPESCRIPT, "send", "return message", "= 3"),
        (C, "parse", "atoi", '"1"'),
        (C, "main", '"1"', "atoi"),
        (YAML, "server", "- b", "timeout: 5"),
        (YAML, "hosts", "- b", "port: 80"),
        (YAML, "timeout", "5", "port: 80"),
        (RUST, "Config", "pub name", "fn other"),
        (RUST, "Config", "#[derive(Debug)]", "fn other"),
        (RUST, "read", "todo!()", "pub name"),
    ],
)
def test_the_span_of_a_symbol_has_what_defines_it_and_nothing_else(
    text: str, symbol: str, inside: str, outside: str
) -> None:
    before = digest(text, symbol)

    assert before != ""
    assert inside in text
    assert outside in text
    assert digest(text.replace(inside, inside + "9"), symbol) != before
    assert digest(text.replace(outside, "9" + outside[1:] if outside[0] == "9" else outside + "9"), symbol) == before


def test_a_symbol_that_nothing_defines_stands_for_the_lines_that_name_it() -> None:
    text = "# how\nCall fetch_all first.\nThen wait.\nNever fetch_all twice.\n"

    assert digest(text, "fetch_all") == digest(text.replace("Then", "And then"), "fetch_all")
    assert digest(text, "fetch_all") != digest(text.replace("twice", "again"), "fetch_all")
    assert digest(text, "nothing") == ""


@pytest.mark.parametrize("symbol", ["", "load", "Store"])
@pytest.mark.parametrize(
    "other",
    [
        PYTHON.replace("\n", "\r\n"),
        PYTHON.replace("\n", "  \t\n"),
        PYTHON + "\n\n",
        "\ufeff" + PYTHON,
    ],
)
def test_line_ends_and_blanks_at_the_end_do_not_count(symbol: str, other: str) -> None:
    assert digest(other, symbol) == digest(PYTHON, symbol)


def test_a_file_that_is_no_text_is_known_as_a_whole() -> None:
    assert SourceText(b"\x00PNG").digest("") != SourceText(b"\x00PNH").digest("")
    assert SourceText(b"\x00PNG name").digest("name") == ""


@pytest.mark.parametrize(
    "text",
    [
        "name " * 200_000,
        "name(" * 200_000,
        "name\n" * 200_000,
        " " * 500_000 + "name",
        "class " * 150_000 + "name",
        "def name():\n" + "  (\n" * 200_000,
    ],
)
def test_no_file_takes_long(text: str) -> None:
    """A bound that is a promise: it is looked at before an agent gets its answer."""
    began = time.process_time()
    SourceText(text.encode()[: 1 << 20]).digest("name")

    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("`parse_config` in a.py retries", ["parse_config"]),
        ("The function retry waits", ["retry"]),
        ("Client.fetchAll is slow", ["fetchAll"]),
        ("call load() first", ["load"]),
        ("`Store.load` is cached", ["load", "Store"]),
        ("std::move_it moves", ["move_it"]),
        ("We chose Postgres for the team on Monday", []),
        ("see https://example.org/some_page and docs/some_file.md", []),
        ("the function of the class", []),
    ],
)
def test_what_looks_like_a_symbol_in_a_text(text: str, symbols: list[str]) -> None:
    assert symbols_in(text) == symbols
