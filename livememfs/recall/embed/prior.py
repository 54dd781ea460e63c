"""What any text looks like to a model: the mean of a few that have nothing in common.

Owns the texts. The vectors of these models all point in much the same direction; what a text says is how it differs
from that direction, which cannot be told from the few texts of a small space. Pure; any thread.
"""

from __future__ import annotations

from livememfs.recall.index.record import digest

TEXTS = (
    "Anna (3 March 2024): We will meet on Tuesday instead of Monday, because the room is taken.",
    "claude (12 June 2025): The build fails when the cache is empty; clearing it twice does not help.",
    "Marc (28 novembre 2023): Le rapport doit être envoyé avant la fin du mois, avec les chiffres corrigés.",
    "cursor (9 January 2026): Decision: keep the old format for one more release, then remove it.",
    "I went to the lake with my sister last summer and it rained the whole time!",
    "codex (17 août 2025): La fonction renvoie une liste vide au lieu d'une erreur quand le fichier manque.",
    "Lea (5 May 2022): My favourite part was the music, although the food could have been warmer.",
    "cline (30 September 2025): To do: write a test for the second case and ask Paul about the limit.",
    "Prices rose by four percent in the second quarter, mostly because of transport.",
    "Il faut penser à renouveler le contrat d'assurance de la maison en avril.",
    "Jon (21 December 2024): Have you read the book I gave you? What did you think of the end?",
    "claude (2 février 2026): On garde la version actuelle, la nouvelle consomme deux fois plus de mémoire.",
    "The parser now accepts comments at the end of a line; older files are read as before.",
    "Sam (14 July 2023): Thank you so much, that means a lot to me. I will call you tomorrow.",
    "La réunion a été reportée ; personne n'avait préparé les documents demandés.",
    "gemini (8 October 2025): Retries are limited to five with a pause that doubles each time.",
    "She started to paint two years ago and sold her first picture in spring.",
    "L'équipe a choisi la solution la plus simple, quitte à la remplacer plus tard.",
    "Maria (1 April 2025): The customer wants invoices in their own currency from now on.",
    "Users on slow connections see a blank page for several seconds before anything appears.",
    "Paul (19 juin 2024): Mon frère déménage à Lyon pour son nouveau travail dans un hôpital.",
    "codex (25 March 2026): The variable is read once at start, so changing it needs a restart.",
    "We planted tomatoes and beans, but the snails ate nearly everything.",
    "Le serveur répond lentement le matin, quand toutes les sauvegardes tournent en même temps.",
    "Tom (11 November 2022): I finally finished the course and got my certificate.",
    "claude (6 May 2025): Insight: most of the time is spent waiting for the lock, not computing.",
    "The contract ends in March unless one of the two sides writes before Christmas.",
    "Ce script supprime les fichiers de plus de trente jours et note ce qu'il a fait.",
    "Nora (23 August 2025): Let us split the work: you take the forms, I take the tables.",
    "A warning is shown when the password is older than a year, and nothing else happens.",
    "Julie (7 septembre 2025): J'ai préféré le train à l'avion, c'était plus long mais plus calme.",
    "cursor (16 April 2025): Question: should names with spaces be allowed, or refused at the door?",
    "The museum is closed on Mondays, which nobody had told us.",
    "On a mesuré deux fois : l'écart vient de l'horloge de la machine, pas du calcul.",
    "Eva (29 January 2023): My knee still hurts after the run, so I will rest this week.",
    "Progress: half of the pages are translated, the other half waits for review.",
)
WEIGHT = 300
"""How many texts of a space they weigh as much as."""
MEANINGS = frozenset(digest(text) for text in TEXTS)
"""What their vectors are kept under."""
