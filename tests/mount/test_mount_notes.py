"""`live/` as the tools that people use find it: whatever saves a file has written one note, and the bucket has it."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import frontmatter
import pytest
from cloud import Bucket
from machine import Mount, StartMount, clean_environment, sh

from livememfs.records import keys

LIVE = "project/live"
FIELDS = {"timestamp", "agent", "category", "tags", "space_id"}


def stored(bucket: Bucket) -> list[str]:
    """The keys of all notes, without the sentinel."""
    return [key for key in bucket.keys(f"{LIVE}/") if key != f"{LIVE}/.keep"]


def the_note(bucket: Bucket) -> frontmatter.Post:
    """The one note there is: a canonical key, complete front matter."""
    [key] = stored(bucket)
    assert keys.NoteName.parse(key.rpartition("/")[2]) is not None, f"{key} is not canonical"
    post = frontmatter.loads(bucket.text(key))
    assert set(post.metadata) >= FIELDS
    assert post["space_id"] == "project"
    return post


# --- a space -----------------------------------------------------------------------------------------------------


def test_mkdir_puts_three_objects_and_rules_are_the_fourth(mounted: Mount, bucket: Bucket) -> None:
    made = ["project/_meta.json", "project/bank/.keep", "project/live/.keep"]
    assert bucket.keys() == made

    sh("printf '# decisions.md\\n\\nWhat we chose.\\n' > project/_rules.md", cwd=mounted.path)

    assert bucket.keys() == sorted([*made, "project/_rules.md"])
    assert bucket.text("project/_rules.md") == "# decisions.md\n\nWhat we chose.\n"


# --- every way to save -------------------------------------------------------------------------------------------

PYTHON = f"{sys.executable} -c"
SAVES = {
    "echo": "echo 'we chose S3' > {live}/decision.md",
    "here document": "cat > {live}/decision.md <<'END'\nwe chose S3\nEND",
    "tee -a": "printf 'we ' | tee -a {live}/decision.md; printf 'chose S3' | tee -a {live}/decision.md",
    "cp": "echo 'we chose S3' > {tmp}/x; cp {tmp}/x {live}/decision.md",
    "cp -p": "echo 'we chose S3' > {tmp}/x; cp -p {tmp}/x {live}/decision.md",
    "mv into place": "echo 'we chose S3' > {tmp}/x; mv {tmp}/x {live}/decision.md",
    "mv within": "echo 'we chose S3' > {live}/decision.md.tmp; mv {live}/decision.md.tmp {live}/decision.md",
    "sed -i": "echo 'we chose disks' > {live}/decision.md; sed -i s/disks/S3/ {live}/decision.md",
    "write_text": PYTHON + " \"import pathlib; pathlib.Path('{live}/decision.md').write_text('we chose S3')\"",
    "vim": "vim -es -u DEFAULTS -c 'call setline(1, \"we chose S3\")' -c wq {live}/decision.md",
    "vim, an existing note": "echo 'we chose disks' > {live}/decision.md; "
    "vim -es -u DEFAULTS -c '%s/disks/S3/' -c wq {live}/decision.md",
    "vim, with a backup": "echo 'we chose disks' > {live}/decision.md; "
    "vim -es -u DEFAULTS -c 'set backup backupcopy=no' -c '%s/disks/S3/' -c wq {live}/decision.md",
    "dd": "printf 'we chose S3' | dd of={live}/decision.md bs=4 status=none",
    "append": "printf 'we ' > {live}/decision.md; printf 'chose S3' >> {live}/decision.md",
    "two descriptors": "{{ echo 'we chose S3'; : > {tmp}/y; }} > {live}/decision.md",
}


@pytest.mark.parametrize("how", SAVES)
def test_however_it_is_saved_it_is_one_note_and_the_written_name_reads_back(
    mounted: Mount, bucket: Bucket, tmp_path: Path, how: str
) -> None:
    live = mounted.path / LIVE
    sh(SAVES[how].format(live=live, tmp=tmp_path), env=clean_environment(tmp_path))

    note = the_note(bucket)
    assert note.content.strip() == "we chose S3"
    assert note["category"] == "decision"
    assert (live / "decision.md").read_text() == bucket.text(stored(bucket)[0])
    assert sh(f"cat {live}/decision.md").stdout == bucket.text(stored(bucket)[0])


def test_a_note_has_the_same_bytes_under_both_names_and_on_another_machine(
    mounted: Mount, bucket: Bucket, second_mount: StartMount
) -> None:
    sh(f"echo 'we chose S3' > {LIVE}/decision.md", cwd=mounted.path)
    [key] = stored(bucket)
    other = second_mount()

    for mount in (mounted, other):
        assert os.listdir(mount.path / LIVE) == [key.rpartition("/")[2]]
        assert (mount / key).read_bytes() == bucket.get(key)
        assert (mount / LIVE / "decision.md").read_bytes() == bucket.get(key)


def test_editing_a_note_keeps_its_object(mounted: Mount, bucket: Bucket) -> None:
    sh(f"echo 'we chose S3' > {LIVE}/decision.md", cwd=mounted.path)
    before = stored(bucket)

    sh(f"echo 'because it is everywhere' >> {LIVE}/decision.md", cwd=mounted.path)
    sh(f"sed -i 's/chose/took/' {before[0]}", cwd=mounted.path)

    assert stored(bucket) == before
    assert the_note(bucket).content.split("\n") == ["we took S3", "because it is everywhere"]


def test_front_matter_is_honoured_and_fields_nobody_knows_survive(mounted: Mount, bucket: Bucket) -> None:
    text = "---\\ncategory: todo\\nagent: cursor\\nmood: calm\\ntags: [a, b]\\n---\\n\\nbuy milk\\n"
    sh(f"printf '%b' '{text}' > {LIVE}/x", cwd=mounted.path)

    note = the_note(bucket)
    assert (note["category"], note["agent"], note["mood"], note["tags"]) == ("todo", "cursor", "calm", ["a", "b"])
    assert "_cursor_todo_" in stored(bucket)[0]


def test_the_writer_is_named_by_its_own_environment(mounted: Mount, bucket: Bucket) -> None:
    sh(f"LIVEMEMFS_AGENT=cline /bin/sh -c 'echo hello > {LIVE}/insight-one.md'", cwd=mounted.path)

    assert the_note(bucket)["agent"] == "cline"


def test_editors_litter_never_reaches_the_bucket(mounted: Mount, bucket: Bucket) -> None:
    before = bucket.keys()

    for name in (".x.md.swp", "x.md~", "4913", "sedAbCdEf", ".#x.md", "x.tmp", ".DS_Store"):
        sh(f"echo litter > '{LIVE}/{name}'; cat '{LIVE}/{name}'; rm '{LIVE}/{name}'", cwd=mounted.path)

    assert bucket.keys() == before


def test_removing_a_note_by_either_name_removes_its_object(mounted: Mount, bucket: Bucket) -> None:
    sh(f"echo one > {LIVE}/one.md; echo two > {LIVE}/two.md", cwd=mounted.path)

    sh(f"rm {LIVE}/one.md; rm $(ls -d {LIVE}/*)", cwd=mounted.path)

    assert stored(bucket) == []
    assert os.listdir(mounted.path / LIVE) == []
    sh(f"cat {LIVE}/one.md", cwd=mounted.path, status=1)


def test_two_hundred_notes_of_eight_shells_are_two_hundred_notes(mounted: Mount, bucket: Bucket) -> None:
    env = clean_environment(Path("/tmp"))
    live = mounted.path / LIVE
    own = 'for i in $(seq 25); do echo "note $i of $0" > progress-$0-$i.md; done'
    shells = [subprocess.Popen(["/bin/sh", "-c", own, str(n)], cwd=live, env=env) for n in range(8)]
    assert [shell.wait(60) for shell in shells] == [0] * 8

    bodies = [frontmatter.loads(bucket.text(key)).content for key in stored(bucket)]
    assert sorted(bodies) == sorted(f"note {i} of {n}" for n in range(8) for i in range(1, 26))
    assert len(os.listdir(live)) == 200


def test_the_same_name_written_again_is_the_next_version_and_not_another_note(mounted: Mount, bucket: Bucket) -> None:
    sh(f"echo one > {LIVE}/progress.md; echo two > {LIVE}/progress.md", cwd=mounted.path)

    assert the_note(bucket).content == "two"


def test_a_note_written_elsewhere_is_seen_within_the_promised_time(mounted: Mount, bucket: Bucket) -> None:
    key = f"{LIVE}/20260101T000000_codex_todo_0123abcd.md"
    text = '---\ntimestamp: "2026-01-01T00:00:00Z"\nagent: "codex"\ncategory: "todo"\ntags: []\nspace_id: "project"\n'
    os.listdir(mounted.path / LIVE)

    bucket.put(key, text + "---\n\nfrom elsewhere\n")

    # Ten seconds until the first change after silence is found, and one of names in the kernel.
    shown = f"for i in $(seq 120); do ls {LIVE} | grep -q codex && exit 0; sleep 0.1; done; exit 1"
    sh(shown, cwd=mounted.path)
    assert (mounted / key).read_text().endswith("from elsewhere\n")


# --- what cannot be a note ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"caf\xe9 au lait", "Invalid or incomplete multibyte"), (b"x" * (1_048_576 + 1), "File too large")],
    ids=["not UTF-8", "over 1 MiB"],
)
def test_what_cannot_be_a_note_fails_at_close_and_says_why_in_the_mount(
    start_mount: StartMount, bucket: Bucket, content: bytes, reason: str, tmp_path: Path
) -> None:
    mount = start_mount(bucket.environment())
    sh("mkdir project", cwd=mount.path)
    (tmp_path / "bad").write_bytes(content)

    told = sh(f"cp {tmp_path}/bad {LIVE}/bad.md", cwd=mount.path, status=1)

    assert reason in told.stderr
    assert stored(bucket) == []
    assert (mount / LIVE / "bad.md").read_bytes() == content, "the draft stays readable under its name"
    assert f"{LIVE}/bad.md" in (mount / ".livememfs/errors.ndjson").read_text()
    sh(f"echo better > {LIVE}/bad.md", cwd=mount.path)
    assert the_note(bucket).content == "better"


def test_a_directory_in_live_is_refused(mounted: Mount) -> None:
    assert "Operation not permitted" in sh(f"mkdir {LIVE}/sub", cwd=mounted.path, status=1).stderr


def test_a_note_moved_out_of_live_is_copied_by_mv(mounted: Mount, bucket: Bucket) -> None:
    sh(f"echo kept > {LIVE}/a.md; mv {LIVE}/a.md project/a.md", cwd=mounted.path)

    assert stored(bucket) == []
    assert bucket.text("project/a.md").endswith("kept\n")


def test_a_note_can_be_mapped_by_who_reads_and_not_by_who_also_writes(mounted: Mount) -> None:
    """Its front matter is completed at close: whoever wrote through a map would see a file that changes under it."""
    sh("mkdir -p project", cwd=mounted.path)
    path = mounted.path / LIVE / "a.md"
    path.write_text("mapped\n")
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[:].endswith(b"mapped\n")
    with path.open("r+b") as opened, pytest.raises(OSError, match=os.strerror(errno.ENODEV)):
        mmap.mmap(opened.fileno(), 0)


def test_the_lock_of_an_editor_is_refused_without_a_word(start_mount: StartMount, bucket: Bucket) -> None:
    """Emacs makes one beside every file that it shows, and the list of errors would have nothing else."""
    mount = start_mount(bucket.environment())
    sh("mkdir project", cwd=mount.path)

    sh("ln -s ann@host.42:1 project/bank/.#notes.md", cwd=mount.path, status=1)
    assert (mount / ".livememfs/errors.ndjson").read_text() == ""
    sh("ln -s elsewhere project/bank/notes.md", cwd=mount.path, status=1)
    assert "project/bank/notes.md" in (mount / ".livememfs/errors.ndjson").read_text()
