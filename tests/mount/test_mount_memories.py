"""Memories from a shell, on a real mount."""

from __future__ import annotations

import time

from machine import Mount, StartMount, sh
from test_mount_watch import until


def test_what_is_written_is_remembered_and_what_is_removed_can_come_back(
    mounted: Mount, second_mount: StartMount
) -> None:
    space = mounted / "project"
    sh("echo 'David is my brother' > memories/david", cwd=space)
    sh("grep -q 'type: \"fact\"' memories/david && grep -q 'David is my brother' memories/david", cwd=space)
    (name,) = sh("ls memories", cwd=space).stdout.split()
    assert "_fact_" in name

    sh("sed -i s/brother/cousin/ memories/david && grep -q cousin memories/david", cwd=space)
    assert sh("ls memories", cwd=space).stdout.split() == [name]

    mounted.uploaded()
    sh("grep -q cousin memories/david", cwd=second_mount() / "project")

    sh("rm memories/david", cwd=space)
    assert sh("ls memories", cwd=space).stdout == ""
    assert "cousin" in sh("cat memories/.history/*/*", cwd=space).stdout


def test_what_lasts_a_while_is_gone_at_that_second_for_whoever_knew_it(mounted: Mount) -> None:
    space = mounted / "project"
    sh(
        "printf -- '---\nttl: 5s\n---\nMickael is ill\n' > memories/ill && cat memories/ill && ls -l memories",
        cwd=space,
    )
    ends = time.monotonic() + 5.2

    sh("cat memories/ill", cwd=space)
    time.sleep(max(ends - time.monotonic(), 0))  # the kernel knows the name and the bytes by now

    assert sh("ls memories", cwd=space).stdout == ""
    assert "No such file" in sh("cat memories/ill", cwd=space, status=1).stderr


def test_self_and_goals_are_like_memories(mounted: Mount) -> None:
    sh(
        "echo 'I cannot search the web' > self/limitation-web && echo 'Search the web' > goals/capability_request",
        cwd=mounted / "project",
    )

    assert 'category: "limitation"' in sh("cat self/*", cwd=mounted / "project").stdout
    assert 'type: "goal"' in sh("cat goals/*", cwd=mounted / "project").stdout


def test_a_fact_that_becomes_precise_is_one_file_and_the_kernel_knows(mounted: Mount) -> None:
    space = mounted / "project"
    sh("echo \"Mickael s'est cassé l'épaule\" > memories/epaule && cat memories/epaule && ls -l memories", cwd=space)
    sh("echo \"Mickael s'est cassé l'épaule le 10 janvier 2026\" > memories/precise && ls -l memories", cwd=space)

    until(lambda: len(sh("ls memories", cwd=space).stdout.split()) == 1, 20)

    assert "updates:" in sh("cat memories/precise", cwd=space).stdout
    assert "No such file" in sh("cat memories/epaule", cwd=space, status=1).stderr
    assert "cassé l'épaule\n" in sh("cat memories/.history/*/*", cwd=space).stdout
