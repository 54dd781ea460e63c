"""`.livememfs/metrics`: the figures of a mount, all of them."""

from __future__ import annotations

from pathlib import Path

from machine import Mount, StartMount, sh
from prometheus_client.parser import text_string_to_metric_families

from livememfs.serve.metrics import FIGURES
from livememfs.testing.llm import ScriptedLLM, consolidation_reply


def samples(mount: Mount) -> dict[str, float]:
    """Every sample by its name and its labels' values."""
    text = (mount / ".livememfs/metrics").read_text()
    families = text_string_to_metric_families(text)
    return {" ".join([one.name, *one.labels.values()]): one.value for family in families for one in family.samples}


def test_every_figure_is_one_of_a_real_mount(start_mount: StartMount, folder: Path) -> None:
    """With a model, a schedule, an open index and the live page, when no part of the status is missing."""
    with ScriptedLLM(consolidation_reply({"a.md": "# A\n\nWe chose S3.\n"}, action="created")) as llm:
        mount = start_mount(
            {
                "LIVEMEMFS_STORE": str(folder),
                "LLMAAS_API_URL": llm.url,
                "LLMAAS_MODEL": "scripted",
                "LIVEMEMFS_SCHEDULE": '{"project": {"after_notes": 1000}}',
            },
            "--web",
            "127.0.0.1:0",
        )
        sh("mkdir project && echo 'We chose S3.' > project/live/decision-store.md", cwd=mount.path)
        sh("cat 'project/search/which store.md'", cwd=mount.path)
        sh("touch project/.consolidate && cat project/.consolidate.wait .livememfs/journal.wait", cwd=mount.path)

        found = samples(mount)

    names = {name.split(" ")[0].removesuffix("_total") for name in found}
    assert {f"livememfs_{figure.name}" for figure in FIGURES} - names == set()
    assert found["livememfs_healthy"] == 1
    assert found["livememfs_runs_total ok"] == 1
    assert found["livememfs_model_requests_total"] == 1
    assert found["livememfs_model_prompt_tokens_total"] == 100
    assert found["livememfs_journal_pending"] == 0
    assert found["livememfs_journal_accepted_total"] > 0
    assert found["livememfs_store_requests_total put"] > 0
    assert "project" not in (mount / ".livememfs/metrics").read_text()
