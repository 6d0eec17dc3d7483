"""Opening a picture as people see it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from covalign._core.extras import optional


class BrokenImageError(Exception):
    """A picture that cannot be opened; its text says why."""


@functools.cache
def _pillow() -> tuple[Any, Any]:
    return optional("PIL.Image", "embed", "pillow"), optional("PIL.ImageOps", "embed", "pillow")


def rgb(path: Path) -> Any:
    """The picture, upright (its EXIF orientation applied), in RGB; without transparency; of a film the first frame."""
    Image, ImageOps = _pillow()
    try:
        with Image.open(path) as image:
            image.load()
            upright = ImageOps.exif_transpose(image)
            if upright.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):  # Pillow would clip at 255, not scale
                upright = upright.convert("I").point(lambda value: value * (1 / 256)).convert("L")
            if "transparency" in upright.info:  # a palette's; Pillow asks for this detour
                upright = upright.convert("RGBA")
            return upright.convert("RGB")
    except Exception as error:  # a decoder fed with foreign bytes can fail in any way, and all mean the same
        raise BrokenImageError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def blank() -> Any:
    """A grey picture, to try a model on."""
    Image, _ = _pillow()
    return Image.new("RGB", (64, 64), (128, 128, 128))
