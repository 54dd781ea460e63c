"""An embedding model in a folder, as sentence-transformers and optimum export it.

Owns which of its files count and what they say: the graph, how its tokens become one vector, the words before a text,
the longest text; and the name that vectors of this model are kept under, which changes with any of these. Refuses to
import onnxruntime and tokenizers (`foldermodel` does), so a start can check a folder at once. Blocking; any thread, but
what `load` returns is for the trio thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Self

from livememfs.errors import SettingsError
from livememfs.recall.embed.base import slug
from livememfs.recall.embed.inprocess import InProcess
from livememfs.text.foreign import Unreadable, read_json

PREFIX = "dir:"
"""How the names of these models begin."""
TOKENIZER = "tokenizer.json"
USUAL_TOKENS, MOST_TOKENS = 512, 1_024
"""Tokens of a text that are read where the folder does not say, and at most: the memory grows with their square."""
_GRAPHS = ("model.onnx", "onnx/model.onnx")
_SMALLER = ("model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx")
"""Graphs in 8 bits that run on every processor, the usual names first; any other comes after them."""
_STEPS = {"Transformer", "Pooling", "Normalize"}
_DIGITS = 12
_PADDED = {"roberta", "xlm-roberta", "camembert"}
"""Kinds of models that count positions from 2 on."""


def unusable(detail: str, path: Path) -> SettingsError:
    """The error for a folder that lacks something, or whose files are not understood."""
    advice = "complete the folder, or correct LIVEMEMFS_EMBED_MODEL; docs/recall.md says what belongs in it"
    return SettingsError(f"the embedding model in {path} cannot be used: {detail}", advice=advice)


@dataclass(frozen=True)
class ModelFolder:
    """What the files of a folder say.

    :pooling: `cls`, `mean`, or the name of another way that this program does not know
    :further: steps behind it that this program does not know
    """

    path: Path
    called: str
    graph: Path
    pooling: str
    further: tuple[str, ...]
    passage: str
    question: str
    most_tokens: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """The folder at this path. Raises SettingsError, with the name of the file that is at fault."""
        if not path.is_dir():
            raise unusable("there is no such folder", path)
        if not (path / TOKENIZER).is_file():
            raise unusable(f"it has no {TOKENIZER}", path)
        graph, config = _graph(path), _object(path, "config.json")
        steps = _steps(path)
        prompts = _object(path, "config_sentence_transformers.json")
        return cls(
            path=path,
            called=slug(path.absolute().name),  # what its configuration says may be what it was made of
            graph=graph,
            pooling=_pooling(_object(path, f"{steps.get('Pooling', '1_Pooling')}/config.json")),
            further=tuple(sorted(steps.keys() - _STEPS)),
            passage=_prompt(prompts, "document", "passage", "corpus"),
            question=_prompt(prompts, "query"),
            most_tokens=_most_tokens(path, config),
        )

    @property
    def name(self) -> str:
        """`dir:NAME@DIGEST`; the digest is of everything that a vector depends on. Reads the files once."""
        said = repr((self.pooling, self.further, self.passage, self.question, self.most_tokens))
        whole = blake2b(said.encode("utf-8", "surrogatepass"))
        try:
            for file in (self.path / TOKENIZER, *sorted(self.graph.parent.glob(f"{self.graph.stem}.onnx*"))):
                known = file.stat()
                whole.update(_digest(file, known.st_size, known.st_mtime_ns))
        except OSError as error:
            raise unusable(f"{error.filename}: {error.strerror}", self.path) from error
        return f"{PREFIX}{self.called}@{whole.hexdigest()[:_DIGITS]}"


class FolderEmbedder(InProcess):
    """See `Embedder`, for the methods too."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load the model: seconds of work for a large one. Call it in a thread, and do not abandon it.

        Raises SettingsError; ImportError where tokenizers is not installed.
        """
        from livememfs.recall.embed.foldermodel import FolderModel

        folder = ModelFolder.read(path)
        return cls(folder.name, FolderModel(folder), passage=folder.passage, question=folder.question)


@lru_cache(64)
def _digest(path: Path, *_version: int) -> bytes:
    """The digest of a file that was not changed since it was read the last time."""
    with path.open("rb") as file:
        return file_digest(file, blake2b).digest()


def _graph(path: Path) -> Path:
    for name in _GRAPHS:
        if (path / name).is_file():
            return path / name
    others = [found for folder in (path, path / "onnx") for found in sorted(folder.glob("*.onnx")) if found.is_file()]
    if not others:
        raise unusable(f"it has no {' and no '.join(_GRAPHS)}", path)
    return min(others, key=lambda found: _SMALLER.index(found.name) if found.name in _SMALLER else len(_SMALLER))


def _json(path: Path, name: str) -> Any:
    """What a file of the folder says; None without it."""
    try:
        return read_json((path / name).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(f"{name}: {error.strerror}", path) from error
    except Unreadable as error:
        raise unusable(f"{name} cannot be read: {error}", path) from None


def _object(path: Path, name: str) -> Mapping[str, Any]:
    value = _json(path, name)
    if value is not None and not isinstance(value, dict):
        raise unusable(f"{name} cannot be read: it is not a JSON object", path)
    return value or {}


def _steps(path: Path) -> dict[str, str]:
    """What is done one after the other, by kind, and the subfolder that says how."""
    listed = _json(path, "modules.json")
    steps = [step for step in listed if isinstance(step, dict)] if isinstance(listed, list) else []
    return {str(step.get("type", "")).rpartition(".")[2]: str(step.get("path", "")) for step in steps}


def _pooling(config: Mapping[str, Any]) -> str:
    """How the vectors of a text's tokens become one. The mean is what sentence-transformers does without a word."""

    def chosen() -> Iterator[str]:
        if isinstance(config.get("pooling_mode"), str):
            yield config["pooling_mode"]
        for field, value in config.items():
            if field.startswith("pooling_mode_") and value is True:
                yield field.removeprefix("pooling_mode_").removesuffix("s").removesuffix("_token")
        if config.get("include_prompt") is False:
            yield "leaving out the prompt"

    return "+".join(chosen()) or "mean"


def _prompt(config: Mapping[str, Any], *names: str) -> str:
    """The words before a text, under the first of these names that there is; otherwise those for any text."""
    prompts = config.get("prompts")
    if not isinstance(prompts, dict):
        return ""
    known = {name: text for name, text in prompts.items() if isinstance(text, str)}
    return next((known[name] for name in (*names, config.get("default_prompt_name")) if name in known), "")


def _most_tokens(path: Path, config: Mapping[str, Any]) -> int:
    """How much of a text is read: no more than the model has positions for."""
    said = _object(path, "sentence_bert_config.json").get("max_seq_length")
    positions = config.get("max_position_embeddings")
    limits = [limit for limit in (said, positions) if type(limit) is int]
    if type(positions) is int and config.get("model_type") in _PADDED:
        limits.append(positions - 2)
    if type(said) is not int:
        limits.append(USUAL_TOKENS)
    return max(min(*limits, MOST_TOKENS), 8)
