"""Open an image as people see it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from covalign._core.extras import optional


class BrokenImageError(Exception):
    """An image that cannot be opened; the text of the error says why."""


@functools.cache
def _pillow() -> tuple[Any, Any]:
    return optional("PIL.Image", "embed", "pillow"), optional("PIL.ImageOps", "embed", "pillow")


def rgb(path: Path) -> Any:
    """The image in RGB, upright (by its EXIF orientation), without transparency; the first frame of an animation."""
    Image, ImageOps = _pillow()
    try:
        with Image.open(path) as image:
            image.load()
            upright = ImageOps.exif_transpose(image)
            if upright.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):  # Pillow would clip at 255 instead of scaling
                upright = upright.convert("I").point(lambda value: value * (1 / 256)).convert("L")
            if "transparency" in upright.info:  # of a palette; Pillow recommends this detour
                upright = upright.convert("RGBA")
            return upright.convert("RGB")
    except Exception as error:  # damaged bytes can raise any error in a decoder, and all mean the same
        raise BrokenImageError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def blank() -> Any:
    """A grey image, to test a model with."""
    Image, _ = _pillow()
    return Image.new("RGB", (64, 64), (128, 128, 128))
