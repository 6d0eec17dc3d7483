"""Small encoders with random weights, saved as the hub's are, and pictures to feed them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 32  # pictures of this size pass a processor unresized, so that pixels can be computed by hand
MEAN, STD = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]
SMALL = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 3}
PICTURE = {"image_size": SIDE, "patch_size": 8}


def processor(folder: Path, kind: str) -> None:
    """preprocessor_config.json as in the repositories of CLIP, DINOv2 (kind bit) and ViT."""
    common = {"do_resize": True, "do_normalize": True, "image_mean": MEAN, "image_std": STD, "do_rescale": True}
    crop = {"size": {"shortest_edge": SIDE}, "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
    size = {"size": {"height": SIDE, "width": SIDE}} if kind == "ViT" else crop
    text = json.dumps({"image_processor_type": f"{kind}ImageProcessor", **common, **size, "rescale_factor": 1 / 255})
    (folder / "preprocessor_config.json").write_text(text)


def clip(folder: Path) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    text = {**SMALL, "vocab_size": 60, "max_position_embeddings": 12, "eos_token_id": 1, "bos_token_id": 0}
    config = transformers.CLIPConfig(text_config=text, vision_config={**SMALL, **PICTURE}, projection_dim=10)
    transformers.CLIPModel(config).save_pretrained(folder)
    processor(folder, "CLIP")
    return folder


def clip_vision(folder: Path) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.CLIPVisionConfig(**SMALL, **PICTURE, projection_dim=10)
    transformers.CLIPVisionModelWithProjection(config).save_pretrained(folder)
    processor(folder, "CLIP")
    return folder


def dinov2(folder: Path) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.Dinov2Model(transformers.Dinov2Config(**SMALL, **PICTURE)).save_pretrained(folder)
    processor(folder, "Bit")
    return folder


def vit(folder: Path, classifier: bool = False) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    kind = transformers.ViTForImageClassification if classifier else transformers.ViTModel
    kind(transformers.ViTConfig(**SMALL, **PICTURE)).save_pretrained(folder)
    processor(folder, "ViT")
    return folder


def convnet(folder: Path) -> Path:
    """Its pooled output has two more dimensions, of size 1."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    transformers.ResNetModel(config).save_pretrained(folder)
    processor(folder, "ViT")
    return folder


def bert(folder: Path, words: str) -> Path:
    """A text encoder with whole words as its tokens."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(set(words.split()))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    around = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = transformers.BertConfig(**SMALL, vocab_size=len(vocabulary), max_position_embeddings=16)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def picture(seed: int, side: int = SIDE) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def pixels(seed: int) -> np.ndarray:
    """What every processor above makes of picture(seed)."""
    scaled = (np.asarray(picture(seed), dtype=np.float64) / 255 - MEAN) / STD
    return scaled.transpose(2, 0, 1).astype(np.float32)


def gallery(folder: Path, classes: dict[str, int]) -> Path:
    """A folder of PNGs, a subfolder a class; pictures are numbered in the order of their sorted paths."""
    seed = 0
    for name in sorted(classes):
        (folder / name).mkdir(parents=True)
        for i in range(classes[name]):
            picture(seed).save(folder / name / f"{i:03d}.png")
            seed += 1
    return folder
