"""Markdown of all kinds, as projects have it, for testing the edits of a bank."""

from __future__ import annotations

README = """\
<h1 align="center">
  <img src="logo.png" alt="# not a heading">
</h1>

[![build](https://example.org/b.svg)](https://example.org/b) [![# no](x)](y)

# Tool *with* `code` and [a link](https://example.org)

A tool. <!-- # hidden --> More.

## Install ##

```sh
# install it
pip install tool
```

## Usage

1. Run it:
   ```sh
   # in a list
   tool run
   ```
2. Look.

   ## heading in a list item

- [x] done
- [ ] open

> ## heading in a quotation
> text

## Licence
MIT
"""

CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- Something new.

### Fixed

- Something old (#12).

## [1.1.0] - 2026-02-20

### Added

- More.

## [1.0.0] - 2026-01-01
### Added
- All of it.
### Removed
- Nothing.

[Unreleased]: https://example.org/compare/1.1.0...HEAD
[1.1.0]: https://example.org/1.1.0
"""

FENCES = """\
# Fences

````markdown
```python
# one
```
# two
````

~~~
# three
```
# four
~~~

## Between

``` python title="# five"
# six
  ```

## After
   ```
# seven
   ```
    # indented code
text
\t# tabbed, and a lazy line

- item
  ~~~
  # eight
  ~~~

      # nine

#hashtag is no heading
####### nor seven
\\# nor this

## Last
end
"""

SETEXT = """\
Title
=====

Two lines
of a title
---

text
more

Not a heading

---

Another
-
text
***

### Deep
- item
---
# Next
[a]: /url
Under a definition
===
"""

HTML = """\
# Page

<!--
# commented out
-->

<details>
<summary># Summary</summary>

## Inside details

text

</details>

<pre>
# pre

## pre too
</pre>

<script>
// # script

# script
</script>

<div>
# in a div
</div>

## After
<?php
# php
?>
<![CDATA[
# cdata
]]>

# End
"""

TABLES = """\
# Tables

| # | Name |
|---|------|
| 1 | `# a` |
| 2 | b \\| c |

a | b
--|--
1 | 2

## Notes[^1]

[^1]: # a footnote
"""

FRONT_MATTER = """\
---
title: "# no heading"
tags: [a, b]
# a comment
---

Above everything.

# First
text
---
## Under an accidental one
"""

BROKEN_FRONT_MATTER = "---\na: [\nb: c\n---\n\n# A\n\ntext\n"
RULE_ON_TOP = "---\n\nJust a rule.\n\n# A\n\n---\n\n# B\n"

UNICODE = """\
# Решения и факты

## Émile e\u0301te\u0301 🚀

Текст.

## 日本語 見出し
### 👩‍👩‍👧 family
a\u2028# not a line\x85# nor this\x0b# nor that\x0c
## \u00a0padded\u00a0
\u00a0
## Zero\u200bwidth
"""

ODD = """\
#
## Closed ##\x20\x20\x20
## C# and F# ##
##  Many   spaces\x20\x20
##\ttab\t##
## ##
## #x
### Escaped \\#
## trailing \\
   ## indented by three
    ## by four is code
## nul \0 in a title
# Same
## Child
# Same
## Child
"""

NESTED = "# A\n\n- - - - - - - - - - - - x\n\n# B\n\n" + "> " * 30 + "y\n\n# C\n\ntext\n"
OPEN_FENCE = "# A\n\ntext\n\n## B\n\n```\n# never closed\n"
OPEN_COMMENT = "# A\n\ntext\n\n## B\n\n<!-- # never closed\n\n# C\n"
SKIPPED_LEVELS = "### Three\na\n# One\nb\n##### Five\nc\n### Three\nd\n###### Six\ne\n## Two\n"
LISTS = """\
# A

- one
- two
  more

# B
* x
* y

# C
1. a
2. b
   - deep

  # D

      code

# E
- z
  ## F
"""

CORPUS = {
    "readme": README,
    "changelog": CHANGELOG,
    "fences": FENCES,
    "setext": SETEXT,
    "html": HTML,
    "tables": TABLES,
    "front matter": FRONT_MATTER,
    "broken front matter": BROKEN_FRONT_MATTER,
    "a rule on top": RULE_ON_TOP,
    "unicode": UNICODE,
    "odd": ODD,
    "nested": NESTED,
    "open fence": OPEN_FENCE,
    "open comment": OPEN_COMMENT,
    "skipped levels": SKIPPED_LEVELS,
    "lists": LISTS,
    "front matter alone": "---\na: 1\n---",
    "empty": "",
    "blank lines": "\n\n  \n\t\n",
    "no headings": "text\n\nmore text",
    "a heading alone": "# A",
    "carriage returns": "# A\r\rtext\r\r## B\rmore\r# C\r",
    "mixed line ends": "# A\r\ntext\n\r## B\rmore\n\n# C\n\r\nx\r\r\n\n# D",
    "old and new line ends": "# A\ntext\r\n## B\n\nmore\r## C\n\n# D\nx\r\n\n",
}
CORPUS |= {f"{name}, CRLF": text.replace("\n", "\r\n") for name, text in CORPUS.items() if "\r" not in text and text}
CORPUS |= {f"{name}, no end": CORPUS[name].rstrip() for name in ("readme", "changelog", "setext", "fences", "lists")}
CORPUS |= {f"{name}, BOM": f"\ufeff{CORPUS[name]}" for name in ("readme", "setext", "front matter", "empty", "odd")}
