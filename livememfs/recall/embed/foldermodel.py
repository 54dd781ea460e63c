"""The model of a folder on this machine's processor: texts in, vectors out.

Owns what goes into its graph and which of its outputs is the vector: BERT's and ModernBERT's inputs, the vectors of
tokens by their mean or by the first, or one vector where the graph makes it. Refuses other graphs when it is made, by
one short text. Blocking; any thread, several at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Tokens

from livememfs.errors import SettingsError
from livememfs.recall.embed.folder import TOKENIZER, ModelFolder, unusable
from livememfs.recall.embed.model import RuntimeRefuses, session

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_POOLINGS = {"cls", "mean", "mean_sqrt_len"}
"""The last one differs from the mean in its length alone, and every vector gets a length of 1."""
_WHOLE = "sentence_embedding"
"""The output that needs no pooling."""
_BY_TOKEN = ("last_hidden_state", "token_embeddings")
_LOOKED_AT = 65_536
"""Characters of a text that are divided into tokens; what goes into the model is less."""


class FolderModel:
    """The model, loaded. Raises SettingsError. See `LocalModel`."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        try:
            self._tokens = Tokens.from_file(str(folder.path / TOKENIZER))
        except Exception as error:  # its exceptions have no base of their own
            raise self._unusable(f"{TOKENIZER} cannot be read: {error}") from error
        self._tokens.no_padding()
        self._tokens.enable_truncation(folder.most_tokens)
        self._tokens.encode_special_tokens = True  # a text that happens to spell one must not become one
        try:
            self._session = session(str(folder.graph))
        except RuntimeRefuses as error:
            raise self._unusable(f"{folder.graph.name}: {error}") from error
        self._inputs = [given.name for given in self._session.get_inputs()]
        if unknown := set(self._inputs) - _INPUTS:
            wanted = ", ".join(sorted(unknown))
            raise self._unusable(f"{folder.graph.name} wants {wanted}, which livememfs does not know")
        self._output, self._at = self._chosen()
        try:
            self.dim = len(self.vector("a"))
        except SettingsError:
            raise
        except Exception as error:  # as above
            raise self._unusable(f"{folder.graph.name} does not run: {error}") from error

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of length 1. The same text always has the same."""
        text = text[:_LOOKED_AT].encode("utf-8", "replace").decode()  # half of a surrogate pair is no character
        ids = np.array([self._tokens.encode(text).ids], np.int64)
        of_text = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        [[rows]] = self._session.run([self._output], {name: of_text[name] for name in self._inputs})
        row = np.asarray(rows, np.float32)
        if self._at != _WHOLE:
            row = row[0] if self._at == "cls" else row.mean(axis=0)
        length = float(np.linalg.norm(row)) if row.ndim == 1 else 0.0
        if not 0 < length < float("inf"):
            raise self._unusable(f"{self._folder.graph.name} gives no vector for a text")
        return np.asarray(row / length, np.float32)

    def _chosen(self) -> tuple[str, str]:
        """The output that is read, and how: whole, or by which pooling."""
        outputs = [given.name for given in self._session.get_outputs()]
        if _WHOLE in outputs:
            return _WHOLE, _WHOLE
        unknown = [step for step in (self._folder.pooling, *self._folder.further) if step not in _POOLINGS]
        if unknown:
            raise self._unusable(
                f"it makes its vectors by {', '.join(unknown)}, which livememfs does not know,"
                f" and {self._folder.graph.name} has no output {_WHOLE}"
            )
        return next((name for name in _BY_TOKEN if name in outputs), outputs[0]), self._folder.pooling

    def _unusable(self, detail: str) -> SettingsError:
        return unusable(detail, self._folder.path)
