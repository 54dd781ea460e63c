"""Links, attributes and views of memories from a shell, on a real mount."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from machine import Mount, StartMount, sh
from test_mount_watch import until


def attribute(path: Path, name: str) -> str:
    return os.getxattr(path, f"user.livememfs.{name}").decode()


def refusals(mount: Mount) -> list[dict[str, str]]:
    return [json.loads(line) for line in (mount / ".livememfs/errors.ndjson").read_text().splitlines()]


def remember(space: Path, *written: str) -> list[str]:
    """Memories of these names; their ids."""
    found = []
    for name in written:
        sh(f"echo 'text of {name}' > memories/{name}", cwd=space)
        (new,) = sh(f"grep -l 'text of {name}$' memories/*.md", cwd=space).stdout.split()
        found.append(Path(new).stem)
    return found


def test_a_link_made_by_hand_is_in_the_front_matter_and_leads_to_the_file(
    mounted: Mount, second_mount: StartMount
) -> None:
    space = mounted / "project"
    one, two = remember(space, "one", "two")

    sh(f"ln -s ../{two}.md memories/one.links/updates/", cwd=space)
    sh("ln -s ../two memories/one.links/part_of/", cwd=space)

    sh(f"""grep -qF 'links: {{updates: ["{two}"], part_of: ["{two}"]}}' memories/one""", cwd=space)
    assert sh(f"ls memories/{one}.md.links/updates", cwd=space).stdout == f"{two}.md\n"
    link = f"memories/{one}.md.links/updates/{two}.md"
    assert sh(f"readlink -f {link}", cwd=space).stdout == f"{space}/memories/{two}.md\n"
    assert "text of two" in sh(f"cat {link}", cwd=space).stdout
    assert sh("ls memories", cwd=space).stdout.split() == sorted([f"{one}.md", f"{two}.md"])

    mounted.uploaded()
    there = second_mount() / "project"
    assert "text of two" in sh(f"cat {link}", cwd=there).stdout

    moved = sh(f"mv memories/one.links/updates/{two}.md memories/one.links/caused_by/", cwd=space)
    assert moved.stderr == ""
    assert attribute(space / "memories/one", "links") == f"part_of {two},caused_by {two}"
    sh(f"rm memories/one.links/part_of/{two}.md memories/one.links/caused_by/*", cwd=space)
    sh("grep -q links: memories/one", cwd=space, status=1)
    sh("grep -q 'text of one' memories/one && grep -q 'text of two' memories/two", cwd=space)


def test_a_link_to_what_is_no_memory_is_refused_and_says_why(mounted: Mount) -> None:
    space = mounted / "project"
    remember(space, "one")

    assert "Invalid argument" in sh("ln -s ../nobody.md memories/one.links/updates/", cwd=space, status=1).stderr

    (line,) = [line for line in refusals(mounted) if line["operation"] == "symlink"]
    assert line["errno"] == "EINVAL"
    assert line["path"] == "project/memories/one.links/updates/nobody.md"
    assert "names no memory of project" in line["what"]
    assert "Operation not permitted" in sh("mkdir memories/one.links/x", cwd=space, status=1).stderr


def test_attributes_are_read_and_set_and_the_kernel_sees_the_new_bytes(mounted: Mount) -> None:
    space = mounted / "project"
    (one,) = remember(space, "one")
    file = space / "memories" / f"{one}.md"
    before = file.read_bytes()
    assert (attribute(file, "type"), attribute(file, "importance"), attribute(file, "score")) == ("fact", "0.6", "0.6")

    os.setxattr(file, "user.livememfs.importance", b"0.95")
    os.setxattr(file, "user.livememfs.subjects", b"David, a house in Toulouse")

    after = file.read_bytes()
    assert file.stat().st_size == len(after) > len(before)
    assert b"importance: 0.95\n" in after
    assert b'subjects: ["David", "a house in Toulouse"]\n' in after
    assert attribute(file, "score") == "0.95"
    with pytest.raises(OSError, match="Invalid argument"):
        os.setxattr(file, "user.livememfs.importance", b"very")
    line = refusals(mounted)[-1]
    assert (line["operation"], line["errno"]) == ("setxattr", "EINVAL")
    assert "a number from 0 to 1" in line["what"]
    os.setxattr(file, "user.livememfs.score", b"1")  # as a copier does with what it has read
    assert attribute(file, "score") == "0.95"


def test_an_agent_lowers_the_trust_of_a_memory_and_only_a_person_raises_it(mounted: Mount) -> None:
    space = mounted / "project"
    (one,) = remember(space, "one")
    file = space / "memories" / f"{one}.md"

    def give(trust: str, by: str, status: int = 0) -> str:
        script = f"import os; os.setxattr('memories/{one}.md', 'user.livememfs.trust', b'{trust}')"
        command = f'env LIVEMEMFS_AGENT={by} {sys.executable} -c "{script}"'
        return str(sh(command, cwd=space, status=status).stderr)

    give("web", "claude")
    assert attribute(file, "trust") == "web"
    assert b'trust: "web"\n' in file.read_bytes()
    assert "Operation not permitted" in give("agent", "claude", status=1)
    give("user", "ann")
    assert attribute(file, "trust") == "user"
    assert file.stat().st_size == len(file.read_bytes())
    assert "user.livememfs.trust" not in os.listxattr(file)


def test_views_are_links_that_lead_to_the_files(mounted: Mount) -> None:
    space = mounted / "project"
    sh("printf -- '---\nsubjects: [David]\n---\nMy brother\n' > memories/david", cwd=space)
    sh("echo 'We use Postgres' > memories/decision-database", cwd=space)

    assert sh("cat memories/.by/subject/david/*.md", cwd=space).stdout.count("My brother") == 1
    assert sh("ls memories/.by/type", cwd=space).stdout.split() == ["decision", "fact"]
    assert "We use Postgres" in sh("cat memories/.by/importance/high/*", cwd=space).stdout
    assert len(sh("ls memories/.recent/6h memories/.recent/2w", cwd=space).stdout.split()) == 6
    found = sh("find memories -type l -exec readlink -e {} +", cwd=space).stdout.split()
    assert len(found) == 2 + 1 + 2 + 2
    assert {str(Path(path).parent) for path in found} == {f"{space}/memories"}
    assert sh("grep -rl Postgres memories", cwd=space).stdout.count("\n") == 1

    sh("rm memories/david", cwd=space)
    assert sh("ls memories/.by/subject", cwd=space).stdout == ""
    assert len(sh("find memories -type l", cwd=space).stdout.split()) == 3
    assert "Read-only" in sh("rm memories/.by/type/decision/*", cwd=space, status=1).stderr


def test_copies_and_editors_are_not_disturbed_by_the_attributes(mounted: Mount, tmp_path: Path) -> None:
    space = mounted / "project"
    (one,) = remember(space, "one")

    sh(f"cp -a memories/{one}.md {tmp_path}/copy.md && cp -a memories/{one}.md plain.md", cwd=space)
    sh(f"cp -a memories/{one}.md memories/copy", cwd=space)

    assert b"text of one" in (tmp_path / "copy.md").read_bytes()
    assert len(sh("ls memories", cwd=space).stdout.split()) == 2


def test_a_search_finds_what_a_memory_that_fits_is_linked_to(mounted: Mount) -> None:
    space = mounted / "project"
    sh("echo 'We chose the broker Kafka' > memories/decision-broker", cwd=space)
    sh("echo 'Too many machines for so few messages' > memories/decision-later", cwd=space)
    sh("ln -s ../decision-broker memories/decision-later.links/updates/", cwd=space)

    assert "few messages" in sh("cat 'search/broker kafka'/*", cwd=space).stdout
    assert "| graph |" in sh("cat 'search/.explain/broker kafka.md'", cwd=space).stdout
    figures = json.loads((mounted / ".livememfs/status.json").read_text())["statistics"]["recall"]["index"]
    assert (figures["links"], figures["lost_links"]) == (1, 0)


def test_what_was_of_use_has_a_higher_score_and_what_was_told_alone_has_not(mounted: Mount) -> None:
    space = mounted / "project"
    sh("printf -- '---\nimportance: 0.79\n---\nOur broker is Kafka\n' > memories/broker", cwd=space)
    assert attribute(space / "memories/broker", "score") == "0.79"
    sh("cat search/broker.md", cwd=space)  # which opens the index, and that takes longer than a turn may

    assert "Kafka" in sh("exec 3<>.recall; echo 'which broker do we use?' >&3; cat <&3", cwd=space).stdout

    until(lambda: attribute(space / "memories/broker", "told") == "1", 5)
    assert [attribute(space / "memories/broker", name) for name in ("uses", "score")] == ["0", "0.79"]
    sh("cat memories/broker", cwd=space)
    until(lambda: attribute(space / "memories/broker", "score") == "0.8295", 5)
