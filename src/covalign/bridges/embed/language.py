"""Texts through a pretrained sentence encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.extras import optional
from covalign.bridges.embed import device as devices
from covalign.bridges.embed.checkpoints import SAFE, as_rows, load_model, loading, random_weights
from covalign.bridges.embed.weights import modules


def text_encoder(folder: Path, device: Any, dtype: Any) -> Any:
    """``SentenceEncoder`` if the folder has a ``modules.json``, else ``TextEncoder``."""
    return SentenceEncoder(folder, device, dtype) if modules(folder) else TextEncoder(folder, device, dtype)


class SentenceEncoder:
    """The steps of ``modules.json``: usually a transformer, a pooling, and unit length."""

    pooling = "sentence-transformers"
    prepare = staticmethod(str)  # the text itself: a whole batch is tokenized at once

    def __init__(self, folder: Path, device: Any, dtype: Any) -> None:
        devices.import_torch()
        SentenceTransformer = optional("sentence_transformers", "embed", "sentence-transformers").SentenceTransformer
        weights = {"dtype": dtype, "use_safetensors": True}
        with loading(folder, "a sentence-transformers model"):
            self._model = SentenceTransformer(str(folder), device=str(device), model_kwargs=weights, **SAFE)

    def __call__(self, batch: list[str]) -> NDArray[np.float32]:
        """One row per text."""
        rows = self._model.encode(batch, batch_size=len(batch), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, dtype=np.float32)


class TextEncoder:
    """z = projected text features (CLIP and similar), else the mean of the last layer over the text's own tokens."""

    prepare = staticmethod(str)  # the text itself: a whole batch is tokenized at once

    def __init__(self, folder: Path, device: Any, dtype: Any) -> None:
        self._model, absent = load_model(folder, device, dtype)
        if others := [name for name in absent if "pooler" not in name.split(".")]:  # the mean needs no pooler
            raise random_weights(folder, others)
        self._device = device
        self.pooling = "projected" if hasattr(self._model, "get_text_features") else "mean"
        with loading(folder, "a tokenizer (tokenizer.json)"):
            self.tokenizer = devices.import_transformers().AutoTokenizer.from_pretrained(folder, **SAFE)
        self._most = self._longest()

    def _longest(self) -> int | None:
        """The largest number of tokens; a tokenizer without a limit reports an absurdly large number."""
        config = getattr(self._model.config, "text_config", None) or self._model.config
        places = [self.tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
        known = [int(n) for n in places if n is not None and n < 10**6]
        return min(known) if known else None

    def __call__(self, batch: list[str]) -> NDArray[np.float32]:
        """One row per text; texts longer than the model allows are cut."""
        torch = devices.import_torch()
        limits = {"truncation": True, "max_length": self._most} if self._most else {}
        with torch.inference_mode():
            tokens = self.tokenizer(batch, padding=True, return_tensors="pt", **limits).to(self._device)
            if self.pooling == "projected":
                features = self._model.get_text_features(**tokens)
                z = getattr(features, "pooler_output", features)
            else:
                own = tokens["attention_mask"].unsqueeze(-1)
                hidden = self._model(**tokens).last_hidden_state.float()
                z = (hidden * own).sum(dim=1) / own.sum(dim=1).clamp(min=1)
            return as_rows(z)
