"""A transformers model from a folder: its own class, its own weights, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.messages import listed, message
from covalign.bridges.embed import device as devices

SAFE = {"trust_remote_code": False, "local_files_only": True}


@contextmanager
def loading(folder: Path, need: str) -> Iterator[None]:
    """Load without messages; an error of the library says that the folder cannot be read as what is needed."""
    devices.import_transformers()  # if it is missing, the error names the extra to install
    try:
        with devices.quiet():
            yield
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, TypeError) as error:
        raise unusable_model(folder, need, error) from error
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):  # SafetensorError: a truncated or foreign file
            raise unusable_model(folder, "weights in safetensors format", error) from error
        raise


def load_model(folder: Path, device: Any, dtype: Any) -> tuple[Any, list[str]]:
    """The model, ready for use, and the names of weights that the folder lacks."""
    transformers = devices.import_transformers()
    with loading(folder, "a model that transformers knows"):
        config = transformers.AutoConfig.from_pretrained(folder, **SAFE)
        kind = transformers.AutoModel
        for name in getattr(config, "architectures", None) or ():
            if name.endswith("WithProjection"):  # AutoModel would leave the projection out
                kind = getattr(transformers, name, kind)
        model, report = kind.from_pretrained(
            folder, config=config, dtype=dtype, use_safetensors=True, output_loading_info=True, **SAFE
        )
    return model.eval().to(device), sorted(report["missing_keys"])


def as_rows(features: Any) -> NDArray[np.float32]:
    """A tensor of features on any device as rows of float32."""
    return np.asarray(features.float().cpu().numpy(), dtype=np.float32)


def unusable_model(folder: Path, need: str, why: Any) -> ValueError:
    """The error for a folder that transformers cannot load."""
    reason = next((line.strip() for line in str(why).splitlines() if line.strip()), type(why).__name__)
    problem = f"the folder {str(folder)!r} cannot be read as {need} ({reason})"
    return ValueError(message(problem, remedy="Download it again, or choose another model"))


def random_weights(folder: Path, names: Iterable[str]) -> ValueError:
    """The error for a model without all its weights: transformers would fill in random numbers."""
    problem = f"{str(folder)!r} lacks weights ({listed(names, 3)}), so random numbers would replace them"
    remedy = "Choose another pooling (cls or mean if the pooler is missing), or another model"
    return ValueError(message(problem, remedy=remedy))
