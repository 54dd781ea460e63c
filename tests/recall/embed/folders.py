"""Folders with embedding models as sentence-transformers and optimum export them, made without either."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.embed import encoder, onnxfile
from livememfs.recall.embed.onnxfile import Message
from livememfs.recall.embed.weights import Weights, unpacked

INT64 = 7
OPERATORS = (("", 18),)
BERT, MODERNBERT = ("input_ids", "attention_mask", "token_type_ids"), ("input_ids", "attention_mask")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "query", "passage", ":", "red", "green", "apples", "pears")
TABLE = np.random.default_rng(1).standard_normal((len(WORDS), 16)).astype(np.float32)
"""The vector of each word in the tiny models: nothing else is computed."""
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}


def tiny(
    folder: Path,
    *,
    inputs: Sequence[str] = BERT,
    output: str = "last_hidden_state",
    graph: str = "model.onnx",
    pooling: str = "mean",
    table: NDArray[np.float32] = TABLE,
    prompts: Mapping[str, str] | None = None,
    **files: Any,
) -> Path:
    """A model whose tokens have the vectors of a table, with BERT's tokenizer; `files`: more files, `_` for `/`."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes: list[Message] = [onnxfile.node("Gather", ["table", "input_ids"], ["found"], axis=0)]
    tensors = [onnxfile.tensor("table", table), onnxfile.tensor("end", np.array([-1], np.int64))]
    last = "found"
    for name in inputs[1:]:  # each is needed: without the mask all is zero, and another type moves every vector
        nodes.append(onnxfile.node("Unsqueeze", [name, "end"], [f"{name}.wide"]))
        nodes.append(onnxfile.node("Cast", [f"{name}.wide"], [f"{name}.float"], to=onnxfile.FLOAT))
        kind = "Mul" if name == "attention_mask" else "Add"
        nodes.append(onnxfile.node(kind, [last, f"{name}.float"], [f"{last}+"]))
        last += "+"
    if output == "sentence_embedding":
        tensors.append(onnxfile.tensor("tokens", np.array([1], np.int64)))
        nodes.append(onnxfile.node("ReduceMax", [last, "tokens"], [output], keepdims=0))
    else:
        nodes.append(onnxfile.node("Identity", [last], [output]))
    shape: list[int | str] = [1, 16] if output == "sentence_embedding" else [1, "tokens", 16]
    write_graph(folder / graph, nodes, tensors, inputs, output, shape)
    _write(folder / "tokenizer.json", bert_tokenizer())
    _write(folder / "config.json", {"model_type": "bert", "max_position_embeddings": 64})
    _write(folder / "1_Pooling/config.json", {field: mode == pooling for mode, field in POOLINGS.items()})
    if prompts is not None:
        _write(folder / "config_sentence_transformers.json", {"prompts": dict(prompts), "default_prompt_name": None})
    for name, value in files.items():
        _write(folder / f"{name}.json", value)
    return folder


def write_graph(
    path: Path,
    nodes: Sequence[Message],
    tensors: Sequence[Message],
    inputs: Sequence[str],
    output: str,
    shape: Sequence[int | str],
    operators: Sequence[tuple[str, int]] = OPERATORS,
) -> None:
    """A graph of these nodes from numbers of tokens to one output."""
    path.parent.mkdir(parents=True, exist_ok=True)
    taken = [onnxfile.value(name, INT64, ["texts", "tokens"]) for name in inputs]
    given = [onnxfile.value(output, onnxfile.FLOAT, shape)]
    path.write_bytes(onnxfile.file(nodes, tensors, taken, given, operators=operators))


def bert_tokenizer() -> dict[str, Any]:
    """Words in lower case between [CLS] and [SEP]. It cuts after eight tokens and pads, as exported ones may."""
    special = [
        {"id": WORDS.index(name), "content": name, "special": True, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for name in WORDS[:4]
    ]  # fmt: skip
    text, ends = [{"Sequence": {"id": "A", "type_id": 0}}], ("[CLS]", "[SEP]")
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ends)
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": special,
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [first, *text, last], "pair": [first, *text, last],
            "special_tokens": {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ends},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: n for n, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }  # fmt: skip


def exported(folder: Path, weights: Weights, numbers: Sequence[Sequence[int]]) -> Path:
    """The built-in model as others would export it, with as much of its vocabulary as some texts need.

    `numbers`: the tokens of these texts. A part of the vocabulary is enough: the best way to divide a word is the best
    of fewer ways, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = sorted({0, 1, 2, 3}.union(*numbers))
    graph = encoder._Graph(weights)
    words = unpacked(weights.packed("emb.word", weights.hidden)[kept])
    places = weights.plain("emb.pos").reshape(-1, weights.hidden) + weights.plain("emb.type")[: weights.hidden]
    for name, values in (("words", words), ("places", places)):
        graph.constant(name, values)
    for name, value in (("one", 1), ("along", 1), ("zero", 0)):
        graph.constant(name, np.array(value, np.int64))
    graph.add("Gather", ["words", "input_ids"], "word", domain="", axis=0)
    graph.add("CumSum", ["attention_mask", "along"], "counted", domain="")
    graph.add("Sub", ["counted", "one"], "at", domain="")
    graph.add("Gather", ["places", "at"], "place", domain="", axis=0)
    last = graph.normalised(graph.plus("word", "place"), "emb.ln")
    graph.constant("thirds", np.full(3, weights.hidden, np.int64))
    for number in range(weights.layers):
        last = encoder._layer(graph, number, last)
    graph.add("Identity", [last], "last_hidden_state", domain="")
    shape = [1, "tokens", weights.hidden]
    write_graph(
        folder / "onnx/model.onnx", graph.nodes, graph.tensors, MODERNBERT, "last_hidden_state", shape,
        encoder._OPERATORS,
    )  # fmt: skip
    scores = weights.scores.tolist()
    pieces = [[weights.pieces[number], scores[number]] for number in kept]
    _write(folder / "tokenizer.json", xlmr_tokenizer(pieces))
    _write(folder / "config.json", {"model_type": "xlm-roberta", "max_position_embeddings": 514})
    _write(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    _write(folder / "1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    prompts = {"query": "query: ", "passage": "passage: "}
    _write(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    kinds = ("Transformer", "Pooling", "Normalize")
    steps = [{"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "",
              "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(kinds)]  # fmt: skip
    _write(folder / "modules.json", steps)
    return folder


def xlmr_tokenizer(pieces: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """XLM-R's: the likeliest pieces of each word, between `<s>` and `</s>`."""
    text, ends = {"Sequence": {"id": "A", "type_id": 0}}, ("<s>", "</s>")
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ends)
    number = {"<s>": 0, "</s>": 2}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"},
                              {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}],
        },
        "post_processor": {
            "type": "TemplateProcessing", "single": [first, text, last], "pair": [first, text, last],
            "special_tokens": {name: {"id": name, "ids": [number[name]], "tokens": [name]} for name in ends},
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(piece) for piece in pieces], "byte_fallback": False},
    }  # fmt: skip


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False))
