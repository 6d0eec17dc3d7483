"""The cost of ``embed.images`` beyond the model: ours against a loop written by hand, including opening images.

A ViT of the size of DeiT-tiny with random weights, JPEGs of 256 x 256. "by hand" loads the model, then for each batch
opens the images, calls the processor and calls the model; ours also lists the folder, checks the weights, keeps rows
for a restart and writes the .npz. --one-worker adds a run that opens images with one thread. Runs are interleaved;
ratios are within a round, and their median over rounds is printed beside the limit.
Run: python benchmarks/embed.py [--images 192] [--rounds 7] [--threads 2]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image

from covalign.bridges import embed

LIMIT = 1.05
BATCH = 16


def make_model(folder: Path) -> Path:
    """A vision transformer with 5.5 million random weights."""
    torch.manual_seed(0)
    size = {"hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768}
    transformers.ViTModel(transformers.ViTConfig(**size)).save_pretrained(folder)
    text = '{"image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224}}'
    (folder / "preprocessor_config.json").write_text(text)
    return folder


def make_images(folder: Path, n: int) -> Path:
    """Smooth random JPEGs, as large on disk as photographs."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for i in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
        coarse.resize((256, 256), Image.Resampling.BICUBIC).save(folder / f"{i:05d}.jpg", quality=90)
    return folder


def by_hand(images: Path, folder: Path) -> np.ndarray:
    model = transformers.ViTModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    files, rows = sorted(images.iterdir()), []
    with torch.inference_mode():
        for start in range(0, len(files), BATCH):
            batch = [Image.open(file).convert("RGB") for file in files[start : start + BATCH]]
            pixels = processor(images=batch, return_tensors="pt")["pixel_values"]
            rows.append(model(pixel_values=pixels).pooler_output.numpy())
    return np.concatenate(rows)


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and processor time (all threads); other work of the machine does not affect the second."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one-worker", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        folder, images = make_model(Path(place) / "model"), make_images(Path(place) / "images", arguments.images)
        out = Path(place) / "z.npz"

        def ours(workers: int | None) -> np.ndarray:
            return embed.images(images, folder, out, batch_size=BATCH, overwrite=True, workers=workers).Z

        runs = {"by hand": lambda: by_hand(images, folder), "embed.images": lambda: ours(None)}
        if arguments.one_worker:
            runs["one worker"] = lambda: ours(1)
        difference = float(np.abs(runs["by hand"]() - runs["embed.images"]()).max())
        rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(arguments.rounds)]
    print(f"{arguments.images} images, {arguments.threads} threads, largest difference of a feature {difference:.1e}\n")
    print("| | measured | seconds | ratio to by hand (median, range) | limit |\n|---|---|---|---|---|")
    for name in runs:
        for kind, what in enumerate(("clock", "processor")):
            ratios = sorted(each[name][kind] / each["by hand"][kind] for each in rounds)
            taken = statistics.median(each[name][kind] for each in rounds)
            spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
            print(f"| {name} | {what} | {taken:.2f} | {spread} | {'' if name == 'by hand' else LIMIT} |")


if __name__ == "__main__":
    main()
