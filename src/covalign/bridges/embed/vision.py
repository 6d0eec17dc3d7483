"""Pictures through a pretrained vision model."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.checks import not_one_of
from covalign._core.messages import message
from covalign.bridges.embed import device as devices
from covalign.bridges.embed import pictures
from covalign.bridges.embed.checkpoints import SAFE, as_rows, load_model, loading, random_weights

POOLINGS = ("auto", "pooler", "cls", "mean")


class ImageEncoder:
    """z = features(model(pixels)): what ``pooling`` says of them.

    - ``projected``: image features in the space shared with texts (``get_image_features``, ``image_embeds``)
    - ``pooler``: the model's own pooled output
    - ``cls``: the last layer's first token, after the last layer norm
    - ``mean``: the mean over the last layer's tokens (or cells)

    ``"auto"`` is the first of these that the model has *with its weights*: fine-tuned ViT checkpoints (such as
    google/vit-base-patch16-224) come without those of the pooler, which transformers then fills with random numbers;
    there ``auto`` means ``cls``, which is what their own classifier reads.
    """

    def __init__(self, folder: Path, device: Any, dtype: Any, pooling: str = "auto") -> None:
        if pooling not in POOLINGS:
            raise not_one_of("pooling", pooling, POOLINGS)
        self._model, absent = load_model(folder, device, dtype)
        self._device, self._dtype = device, dtype
        self.pooling = self._chosen(pooling, absent, folder)
        with loading(folder, "an image processor (preprocessor_config.json)"):
            # One backend for all: torchvision's, where it is installed, gives other pixels than Pillow's.
            load = devices.import_transformers().AutoImageProcessor.from_pretrained
            self.processor = load(folder, backend="pil", **SAFE)
        if self.pooling == "pooler" and not self._has_pooler():
            if pooling == "pooler":
                problem = f"pooling='pooler' needs a model with a pooled output, but {str(folder)!r} has none"
                raise ValueError(message(problem, remedy="Use pooling='cls' or 'mean'"))
            self.pooling = "mean"

    def _chosen(self, pooling: str, absent: list[str], folder: Path) -> str:
        pooler_absent = [name for name in absent if "pooler" in name.split(".")]
        others = [name for name in absent if name not in pooler_absent]
        if others or (pooling == "pooler" and pooler_absent):
            raise random_weights(folder, others or pooler_absent)
        if pooling != "auto":
            return pooling
        if hasattr(self._model, "get_image_features") or type(self._model).__name__.endswith("WithProjection"):
            return "projected"
        return "cls" if pooler_absent else "pooler"

    def _has_pooler(self) -> bool:
        """Whether there is a pooled output: a run of the model shows it."""
        with devices.import_torch().inference_mode():
            output = self._output(self._tensor(self._pixels(pictures.blank())[None]))
        return getattr(output, "pooler_output", None) is not None

    def prepare(self, path: Path) -> NDArray[Any]:
        """A picture's pixels, as the model's own processor makes them."""
        return self._pixels(pictures.rgb(path))

    def _pixels(self, image: Any) -> NDArray[Any]:
        return np.asarray(self.processor(images=image, return_tensors="np")["pixel_values"][0])

    def __call__(self, batch: list[NDArray[Any]]) -> NDArray[np.float32]:
        """One row for each picture. Some processors keep the aspect ratio: pictures of one shape go together."""
        with devices.import_torch().inference_mode():
            stacks = (self._tensor(np.stack(list(same))) for _, same in groupby(batch, key=np.shape))
            return np.concatenate([as_rows(self._pooled(stack).flatten(1)) for stack in stacks])

    def _tensor(self, pixels: NDArray[Any]) -> Any:
        return devices.import_torch().from_numpy(pixels).to(self._device, self._dtype)

    def _output(self, pixels: Any) -> Any:
        """The tower's output; of a model of several towers, that for pictures."""
        tower = self._model if self.pooling == "projected" else getattr(self._model, "vision_model", self._model)
        return tower(pixel_values=pixels)

    def _pooled(self, pixels: Any) -> Any:
        if self.pooling == "projected" and hasattr(self._model, "get_image_features"):
            features = self._model.get_image_features(pixel_values=pixels)
            return getattr(features, "pooler_output", features)  # a tensor before transformers 5
        output = self._output(pixels)
        if self.pooling == "projected":
            return output.image_embeds
        if self.pooling == "pooler":
            return output.pooler_output
        hidden = output.last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        return hidden.mean(dim=1) if hidden.ndim == 3 else hidden.mean(dim=(-2, -1))
