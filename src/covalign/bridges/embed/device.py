"""The device and the precision of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from covalign._core.checks import check_choice, check_text
from covalign._core.extras import optional
from covalign._core.messages import listed, message

DTYPES = ("float32", "float16", "bfloat16")


def import_torch() -> Any:
    """torch, or an error that says how to install it."""
    return optional("torch", "embed")


def import_transformers() -> Any:
    """transformers, or an error that says how to install it."""
    import_torch()  # without torch transformers can be imported, but has no models
    return optional("transformers", "embed")


def choose(device: str) -> Any:
    """The device of this name; ``"auto"`` is a CUDA GPU, else Apple's GPU, else the CPU."""
    check_text("device", device, "for example 'auto', 'cuda' or 'cpu'")
    torch = import_torch()
    known = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    there = [name for name, available in known.items() if available]
    if device == "auto":
        return torch.device(there[0])
    if device.partition(":")[0] in there:
        with suppress(RuntimeError):
            return torch.device(device)
    problem = f"torch sees no device {listed([device])} here, only {', '.join(there)}"
    raise ValueError(message(problem, remedy="Choose one of these or 'auto', or install a build of torch for it"))


def precision(dtype: str) -> Any:
    """The torch type of that name."""
    return getattr(import_torch(), check_choice("dtype", dtype, DTYPES))


@contextmanager
def quiet() -> Iterator[None]:
    """transformers without its messages and progress bars; its settings are restored afterwards."""
    logging = import_transformers().utils.logging
    before, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bar:
            logging.enable_progress_bar()
