"""Representations from pretrained encoders: a folder of images or a table of texts in, rows and their labels out.

Images: projected features where the model has them (CLIP, SigLIP), else the pooled output (DINOv2, ViT). Texts:
sentence-transformers where the model's folder says so, else the mean over tokens. Weights come from a folder, the
Hugging Face cache or the hub, as safetensors only; no code and no pickle of a model is ever run. Needs the extra
``embed``.

>>> import covalign as ca
>>> ca.embed.images("images/", "facebook/dinov2-base", "z.npz")  # doctest: +SKIP
"""

from covalign.bridges.embed.entry import images, texts
from covalign.bridges.embed.result import Embedded, read

__all__ = ["Embedded", "images", "read", "texts"]
