"""A mount on a bucket that somebody filled who means no good: it stays up, mounts again and serves what is good."""

from __future__ import annotations

import json
from typing import Any

from cloud import Bucket
from hostile import METADATA, bodies, hostile_keys
from machine import Mount, StartMount, sh

from livememfs.records import keys

WORST = b'{"epoch":"e","seq":1e999,"recent":[]}'
EVERYTHING = (  # as a curious tool does
    "ls -lR . > /dev/null 2>&1; "
    "find . -type f ! -path '*/.livememfs/*' ! -name '.*' -exec head -c 9 {} + >/dev/null 2>&1; true"
)


def status_of(mount: Mount) -> dict[str, Any]:
    """What `status.json` says now."""
    found: dict[str, Any] = json.loads((mount / ".livememfs/status.json").read_text())
    return found


def unread(mount: Mount) -> list[str]:
    """The paths that `errors.ndjson` names as unreadable."""
    lines = (mount / ".livememfs/errors.ndjson").read_text().splitlines()
    return [line["path"] for line in map(json.loads, lines) if line["operation"] == "read"]


def seen(mount: Mount, key: str) -> None:
    """Look at the space until the watcher has met an object."""
    look = f"ls project >/dev/null; grep -q {key} .livememfs/errors.ndjson && exit 0; sleep 0.1"
    sh(f"for n in $(seq 100); do {look}; done; exit 1", cwd=mount.path)


def works(mount: Mount) -> None:
    """The good space takes a note and tells of it."""
    sh("echo 'We chose Postgres.' > project/live/n.md; cat project/live/* | grep -q Postgres", cwd=mount.path)
    assert status_of(mount)["statistics"]["background"] == {"failures": {}, "failing": 0}


def test_what_once_stopped_every_mount_does_not(start_mount: StartMount, bucket: Bucket) -> None:
    """39 bytes in a beacon, 1,100 brackets, a lease beyond all numbers, and events that are none, of this very host."""
    environment = {**bucket.environment(), "LIVEMEMFS_HOST": "laptop", "LIVEMEMFS_POLL_INTERVAL": "0.2"}
    mount = start_mount(environment)
    sh("mkdir project; ls project", cwd=mount.path)
    good = json.dumps({"space": "project", "event": '{"id": "e", "at": 1e999}'})
    bucket.put("project/_changes/zz.json", WORST.decode())
    bucket.put("project/_changes/zy.json", "[" * 1_100)
    bucket.put("_system/leases/project.json", '{"holder":"x","fence":1e999,"released":false,"expires_at":"x"}')
    odd = (good, "[" * 1_100, '{"space": "\\ud800", "event": "{}"}', '{"space": 1e999}')
    bucket.put("_system/events/laptop-00000001.ndjson", "\n".join(odd))
    seen(mount, "zz.json")
    seen(mount, "zy.json")
    works(mount)
    mount.stop()
    again = start_mount(environment, name="again")
    seen(again, "zz.json")
    seen(again, "laptop-00000001.ndjson")
    works(again)
    assert sorted(unread(again)).count("project/_changes/zz.json") == 1


def test_a_mount_serves_the_rest_of_a_bucket_with_something_hostile_in_every_place(
    start_mount: StartMount, bucket: Bucket
) -> None:
    """What S3 can hold of it: bodies in each place, keys near each, with metadata that is no better."""
    bucket.put("project/_meta.json", json.dumps({"space_id": "project", "created_at": "2026-02-20T14:00:00Z"}))
    bucket.put("bad/_meta.json", json.dumps({"space_id": "bad", "created_at": "2026-02-20T14:00:00Z"}))
    for number, place in enumerate(keys.PLACES):
        if place.shown != "_system/tokens.json":
            bucket.client.put_object(
                Bucket=bucket.name,
                Key=place.example.format(space="bad" if number % 4 else "worse"),
                Body=list(bodies(place, "bad", 300))[number],
            )
        for at, key in enumerate(hostile_keys(place, "bad", 200)[number::60]):
            meta = {name: text for name, text in METADATA[(number + at) % len(METADATA)].items() if text.isascii()}
            try:
                bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"x", Metadata=meta)
            except Exception:  # what the library or the server does not take stands in no bucket
                continue
    for name in ("first", "second"):
        mount = start_mount(bucket.environment(), name=name)
        mount.expect_log("an entry of the ledger cannot be read")
        sh(EVERYTHING, cwd=mount.path)
        works(mount)
        assert sh("ls bad worse 2>&1 | wc -l", cwd=mount.path).stdout.strip() != "0"
        mount.stop()
