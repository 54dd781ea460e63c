"""A model in a folder: what its files say counts, what they lack is named, and its vectors are the model's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import BERT, MODERNBERT, TABLE, WORDS, exported, tiny
from numpy.typing import NDArray
from test_embed_model import TEXTS

from livememfs.errors import SettingsError
from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.embed.folder import FolderEmbedder, ModelFolder
from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.embed.tokens import Tokenizer
from livememfs.recall.embed.weights import Weights


def rows(text: str) -> NDArray[np.float32]:
    """The vectors of the tokens of a text, by the table of the tiny models."""
    return TABLE[[WORDS.index(word) for word in f"[CLS] {text} [SEP]".split()]]


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return vector / np.linalg.norm(vector)


# --- vectors -----------------------------------------------------------------------------------------------------


async def test_the_built_in_model_as_a_folder_gives_the_vectors_of_the_built_in_model(tmp_path: Path) -> None:
    """The whole path: tokens, graph, pooling and prefixes, each by its file."""
    weights = Weights()
    tokenizer = Tokenizer(weights.pieces, weights.scores.tolist())
    numbers = [tokenizer.numbers(prefix + text) for text in TEXTS for prefix in ("passage: ", "query: ")]
    builtin = Builtin(OnnxModel(weights))

    folder = FolderEmbedder.load(exported(tmp_path / "e5", weights, numbers))

    assert folder.name.startswith("dir:e5@")
    ours, theirs = await folder.passages(TEXTS), await builtin.passages(TEXTS)
    assert min(np.sum(ours * theirs, axis=1)) > 0.995  # onnxruntime fuses other steps here, which round otherwise
    assert await folder.question(TEXTS[1]) @ await builtin.question(TEXTS[1]) > 0.995
    assert await folder.question(TEXTS[1]) @ theirs[1] < 0.99


@pytest.mark.parametrize("inputs", [BERT, MODERNBERT], ids=["bert", "modernbert"])
@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [("mean", lambda rows: rows.mean(axis=0)), ("cls", lambda rows: rows[0])],
    ids=["mean", "cls"],
)
async def test_the_vectors_of_tokens_become_one_as_the_folder_says(
    tmp_path: Path, inputs: tuple[str, ...], pooling: str, pooled: Callable[[Any], Any]
) -> None:
    prompts = {"query": "query: ", "document": "passage: "}
    embedder = FolderEmbedder.load(tiny(tmp_path / "m", inputs=inputs, pooling=pooling, prompts=prompts))

    [passage], question = await embedder.passages(["Red apples"]), await embedder.question("red apples")

    assert embedder.dim == 16
    assert passage == pytest.approx(unit(pooled(rows("passage : red apples"))), abs=1e-6)
    assert question == pytest.approx(unit(pooled(rows("query : red apples"))), abs=1e-6)


async def test_a_graph_that_makes_one_vector_of_a_text_is_believed_whatever_the_pooling(tmp_path: Path) -> None:
    embedder = FolderEmbedder.load(tiny(tmp_path / "m", output="sentence_embedding", pooling="max"))

    assert await embedder.question("red apples") == pytest.approx(unit(rows("red apples").max(axis=0)), abs=1e-6)


@pytest.mark.parametrize(
    ("prompts", "passage", "question"),
    [
        ({}, "", ""),
        ({"query": "q: ", "passage": "p: "}, "p: ", "q: "),
        ({"query": "q: ", "document": "d: ", "passage": "p: "}, "d: ", "q: "),
        ({"default": "a: ", "query": "q: "}, "a: ", "q: "),
    ],
)
def test_the_words_before_a_text_are_those_of_its_use_or_those_for_any_text(
    tmp_path: Path, prompts: dict[str, str], passage: str, question: str
) -> None:
    said = {"prompts": prompts, "default_prompt_name": "default"}
    folder = ModelFolder.read(tiny(tmp_path / "m", config_sentence_transformers=said))

    assert (folder.passage, folder.question) == (passage, question)


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({}, 64),
        ({"sentence_bert_config": {"max_seq_length": 32}}, 32),
        ({"sentence_bert_config": {"max_seq_length": 512}}, 64),
        ({"config": {"model_type": "xlm-roberta", "max_position_embeddings": 514}}, 512),
        ({"config": {"model_type": "modernbert", "max_position_embeddings": 8192}}, 512),
        ({"config": {"max_position_embeddings": 8192}, "sentence_bert_config": {"max_seq_length": 8192}}, 1024),
    ],
)
async def test_of_a_long_text_as_much_is_read_as_the_model_takes(
    tmp_path: Path, files: dict[str, Any], most: int
) -> None:
    """Not what an exported tokenizer happens to cut and pad to."""
    folder = tiny(tmp_path / "m", pooling="mean", **files)
    embedder = FolderEmbedder.load(folder)

    assert ModelFolder.read(folder).most_tokens == most
    assert await embedder.question("red " * 5000) == pytest.approx(
        unit(rows("red " * (most - 2)).mean(axis=0)), abs=1e-5
    )


@pytest.mark.parametrize(
    "text", ["", "\ud800", "a" * 2**20, "[CLS] [SEP] [PAD]"], ids=["empty", "half", "long", "ours"]
)
async def test_any_text_has_a_vector_of_length_1_and_none_can_spell_a_special_token(tmp_path: Path, text: str) -> None:
    embedder = FolderEmbedder.load(tiny(tmp_path / "m", pooling="mean"))

    vector = await embedder.question(text)

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert text != "[CLS] [SEP] [PAD]" or vector @ unit(rows(text).mean(axis=0)) < 0.99


# --- the name ----------------------------------------------------------------------------------------------------


def test_the_name_changes_with_everything_that_makes_another_vector_and_with_nothing_else(tmp_path: Path) -> None:
    name = ModelFolder.read(tiny(tmp_path / "m")).name
    others = [
        tiny(tmp_path / "1/m", table=TABLE * 2),
        tiny(tmp_path / "2/m", pooling="cls"),
        tiny(tmp_path / "3/m", prompts={"query": "query: "}),
        tiny(tmp_path / "4/m", sentence_bert_config={"max_seq_length": 32}),
        tiny(tmp_path / "5/m", tokenizer={"version": "1.0"}),
        tiny(tmp_path / "6/m", modules=[{"type": "models.Dense", "path": "2_Dense"}]),
    ]

    assert name.startswith("dir:m@")
    assert len({name, *(ModelFolder.read(other).name for other in others)}) == 7
    (tmp_path / "m/README.md").write_text("about")
    assert ModelFolder.read(tiny(tmp_path / "copy/m")).name == ModelFolder.read(tmp_path / "m").name == name


def test_a_graph_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    name = ModelFolder.read(tiny(tmp_path / "m")).name

    assert ModelFolder.read(tiny(tmp_path / "m", table=TABLE * 3)).name != name


def test_weights_beside_a_large_graph_are_of_the_model(tmp_path: Path) -> None:
    name = ModelFolder.read(tiny(tmp_path / "m")).name
    (tmp_path / "m/model.onnx_data").write_bytes(b"weights")

    assert ModelFolder.read(tmp_path / "m").name != name


# --- which files -------------------------------------------------------------------------------------------------


def test_the_whole_graph_goes_before_one_in_8_bits_which_is_taken_where_it_is_alone(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m", graph="onnx/model_qint8_avx512.onnx")
    assert ModelFolder.read(folder).graph.name == "model_qint8_avx512.onnx"
    tiny(folder, graph="onnx/model_quantized.onnx")
    assert ModelFolder.read(folder).graph.name == "model_quantized.onnx"
    tiny(folder, graph="onnx/model.onnx")
    assert ModelFolder.read(folder).graph == folder / "onnx/model.onnx"


def test_a_folder_with_graph_and_tokenizer_alone_is_enough(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m")
    for name in ("config.json", "1_Pooling/config.json"):
        (folder / name).unlink()

    assert FolderEmbedder.load(folder).dim == 16


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_what_is_missing_is_named_without_loading_anything(tmp_path: Path, missing: str) -> None:
    folder = tiny(tmp_path / "m")
    (folder / missing).unlink()

    with pytest.raises(SettingsError, match=missing) as failure:
        ModelFolder.read(folder)
    assert (failure.value.exit_code, str(folder) in str(failure.value)) == (2, True)


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such folder"):
        ModelFolder.read(tmp_path / "m")


@pytest.mark.parametrize(
    "name", ["config", "modules", "1_Pooling/config", "config_sentence_transformers", "sentence_bert_config"]
)
def test_a_file_that_is_no_json_is_named(tmp_path: Path, name: str) -> None:
    folder = tiny(tmp_path / "m", **{name: {}})
    (folder / f"{name}.json").write_text("{")

    with pytest.raises(SettingsError, match=f"{name}.json cannot be read"):
        ModelFolder.read(folder)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"inputs": ("input_ids", "pixel_values")}, "model.onnx wants pixel_values"),
        ({"pooling": "max"}, "by max, which livememfs does not know"),
        ({"modules": [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]}, "by Dense, which"),
        ({"tokenizer": {"version": "1.0"}}, "tokenizer.json cannot be read"),
        ({"table": TABLE[:2]}, "model.onnx does not run"),
        ({"table": np.zeros_like(TABLE)}, "model.onnx gives no vector"),
    ],
)
def test_a_model_that_cannot_be_used_says_why_when_it_is_loaded(
    tmp_path: Path, broken: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SettingsError, match=reason):
        FolderEmbedder.load(tiny(tmp_path / "m", **broken))
