"""The worked replies of the consolidation's specification, with the settings that nobody changed."""

from __future__ import annotations

from typing import Any

import pytest
from consolidation_world import SPACE, World, ask, run

from livememfs.records import keys
from livememfs.records.space import Meta, parse_synthesis

SYNTHESIS_3 = """\
---
consolidated_at: "2026-02-20T16:00:00Z"
notes_processed: 42
consolidation_number: 3
---

## Synthèse de la consolidation #3

### Faits principaux
- Le module d'authentification a été implémenté et testé (Bearer tokens)
- Décision : utiliser S3 comme unique backend (pas de base de données)
- Le pipeline de consolidation LLM est fonctionnel

### Points d'attention
- Le timeout LLM de 60s est trop court pour les gros espaces
- Question ouverte : faut-il supporter les webhooks pour trigger la consolidation ?

### Prochaines priorités identifiées
- Implémenter le système de backup
- Ajouter le rate limiting sur le WAF
- Écrire la documentation utilisateur
"""
NOTE = """\
Le module d'authentification Bearer token fonctionne correctement.
Tous les tests passent :
- Création de token : OK
- Vérification SHA-256 : OK
- Permissions read/write/admin : OK
- Expiration : OK
"""
REPLY: dict[str, Any] = {
    "bank_files": [
        {
            "filename": "activeContext.md",
            "content": "# Active Context\n\n## Focus actuel\n\nRefactoring du module d'authentification...",
            "action": "updated",
        },
        {
            "filename": "progress.md",
            "content": "# Progress\n\n## Ce qui fonctionne\n- Module auth : terminé\n...",
            "action": "updated",
        },
        {
            "filename": "systemPatterns.md",
            "content": "# System Patterns\n\n## Architecture\n- Pattern S3-only...",
            "action": "created",
        },
    ],
    "synthesis": (
        "## Synthèse de la consolidation #4\n\n### Faits principaux\n- L'auth fonctionne\n"
        "- Décision S3-only confirmée\n\n"
        "### Points d'attention\n- Timeout LLM à surveiller\n\n### Prochaines étapes\n- Backup system\n- Documentation"
    ),
}
BANK = {
    "activeContext.md": "# Active Context\n\n## Focus actuel\n\nImplémentation du backup\n",
    "progress.md": "# Progress\n\n## Ce qui fonctionne\n- Module auth : en cours\n",
}
FILES = ("projectbrief", "productContext", "activeContext", "systemPatterns", "techContext", "progress")
RULES = "# Rules\n\n" + "".join(f"### {name}.md\n- Ce qui est vrai\n\n" for name in FILES)


async def space(*notes: str, bank: dict[str, str] = BANK) -> World:
    """The bucket of the data model with its synthesis #3."""
    world = await World.seeded(rules=RULES, bank=bank, meta={"consolidation_count": 3, "total_notes_processed": 42})
    await world.put(keys.synthesis_key(SPACE), SYNTHESIS_3)
    for note in notes:
        await world.note(note)
    return world


async def test_the_worked_reply_passes_once_it_says_what_became_of_the_notes() -> None:
    world = await space(NOTE)

    result = await run(world, {**REPLY, "coverage": [{"note": 1, "files": ["activeContext.md", "progress.md"]}]})

    assert (result.state, result.metrics.unsourced, result.metrics.warnings) == ("ok", 0, ())
    assert (await world.bank())["systemPatterns.md"] == REPLY["bank_files"][2]["content"]
    assert parse_synthesis(await world.get(keys.synthesis_key(SPACE))).body.strip() == REPLY["synthesis"]
    assert await world.live() == []


async def test_the_worked_reply_to_the_letter_passes_after_one_retry_and_notes_it_took_up_go() -> None:
    world = await space("Refactoring du module d'authentification en cours.", "Module auth terminé.", NOTE)
    result, requests = await ask(world, REPLY, REPLY)

    assert (result.state, len(requests), result.metrics.notes_processed) == ("partial", 2, 2)
    assert result.metrics.unsourced == 0
    assert [NOTE.strip() in (await world.get(key)).decode() for key in await world.live()] == [True]


async def test_the_worked_reply_passes_even_if_no_note_can_go() -> None:
    world = await space(NOTE)
    before = await world.live()

    result = await run(world, REPLY, REPLY)

    assert (result.state, result.reason.startswith("1 of 1 notes are not accounted for")) == ("partial", True)
    assert await world.live() == before
    assert "Pattern S3-only" in (await world.bank())["systemPatterns.md"]


@pytest.mark.parametrize("unsourced", ["list", "refuse"])
async def test_a_first_consolidation_creates_the_six_files(unsourced: str) -> None:
    world = await World.seeded(rules=RULES)
    for number in range(1, 16):
        await world.note(f"Note initiale {number} : le module {FILES[number % 6]} existe.")
    files = [
        {"filename": f"{name}.md", "action": "created", "content": f"# {name}\n\nLe module {name} existe.\n"}
        for name in FILES
    ]
    reply = {"bank_files": files, "synthesis": "## Synthèse de la consolidation #1\n\n15 notes initiales, 6 fichiers."}
    account = [{"note": number, "files": [f"{FILES[number % 6]}.md"]} for number in range(1, 16)]

    result = await run(world, {**reply, "coverage": account}, unsourced=unsourced)

    figures = result.metrics
    assert (result.state, figures.bank_files_created, figures.notes_processed) == ("ok", 6, 15)
    assert await world.live() == []


@pytest.mark.parametrize("unsourced", ["list", "refuse"])
async def test_an_incremental_consolidation_updates_three_files_and_leaves_three(unsourced: str) -> None:
    notes = [f"Étape {number} du module auth : validée le 2026-02-{number % 28 + 1:02}." for number in range(1, 31)]
    world = await space(*notes, bank={f"{name}.md": f"# {name}\n\nDébut.\n" for name in FILES})
    changed = ("activeContext", "progress", "techContext")
    files = [
        {"filename": f"bank/{name}.md", "action": "updated", "content": f"# {name}\n\nDébut.\n\nAuth : 30 étapes\n"}
        for name in changed
    ]
    account = [{"note": number, "files": ["progress.md"]} for number in range(1, 31)]
    reply = {"bank_files": files, "synthesis": "Consolidation n° 4 : auth validée, 30 notes.", "coverage": account}

    result = await run(world, reply, unsourced=unsourced)

    figures = result.metrics
    assert (result.state, figures.bank_files_updated, figures.bank_files_unchanged) == ("ok", 3, 3)
    assert await world.live() == []
    assert Meta.parse(await world.get(keys.meta_key(SPACE))).consolidation_count == 4


async def test_of_600_notes_the_500_oldest_are_taken() -> None:
    world = await space(*(f"note-{number}" for number in range(600)))
    lines = "\n".join(f"- note-{number}" for number in range(500))
    files = [{"filename": "progress.md", "action": "updated", "content": f"# Progress\n\n{lines}\n"}]
    account = [{"note": number, "files": ["progress.md"]} for number in range(1, 501)]

    result = await run(world, {"bank_files": files, "synthesis": "500 notes traitées.", "coverage": account})

    assert (result.state, result.metrics.notes_processed, result.metrics.notes_remaining) == ("ok", 500, 100)
    assert result.metrics.unsourced == 0
    assert len(await world.live()) == 100


async def test_without_notes_the_model_is_not_asked() -> None:
    world = await space()
    before = await world.bucket()
    result, requests = await ask(world, REPLY)

    assert (result.state, requests, result.metrics.notes_processed) == ("ok", [], 0)
    assert await world.bucket() == before
