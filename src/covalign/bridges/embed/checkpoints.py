"""A transformers model from a folder: its own class, its own weights, nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from covalign._core.messages import listed, message
from covalign.bridges.embed import device as devices


def load_model(folder: Path, device: Any, dtype: Any) -> tuple[Any, list[str]]:
    """The model, ready for use, and the names of weights that the folder lacks."""
    transformers = devices.import_transformers()
    safe = {"trust_remote_code": False, "local_files_only": True}
    try:
        with devices.quiet():
            config = transformers.AutoConfig.from_pretrained(folder, **safe)
            kind = transformers.AutoModel
            for name in getattr(config, "architectures", None) or ():
                if name.endswith("WithProjection"):  # AutoModel would leave the projection out
                    kind = getattr(transformers, name, kind)
            model, report = kind.from_pretrained(
                folder, config=config, dtype=dtype, use_safetensors=True, output_loading_info=True, **safe
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise unusable_model(folder, "a model that transformers knows", error) from error
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):  # SafetensorError: a truncated or foreign file
            raise unusable_model(folder, "weights in safetensors format", error) from error
        raise
    return model.eval().to(device), sorted(report["missing_keys"])


def unusable_model(folder: Path, need: str, why: Any) -> ValueError:
    """The error for a folder that transformers cannot load."""
    reason = next((line.strip() for line in str(why).splitlines() if line.strip()), type(why).__name__)
    problem = f"the folder {str(folder)!r} cannot be read as {need} ({reason})"
    return ValueError(message(problem, remedy="Download it again, or choose another model"))


def random_weights(folder: Path, names: Iterable[str]) -> ValueError:
    """The error for a model without all its weights: transformers would fill in random numbers."""
    problem = f"{str(folder)!r} lacks weights ({listed(names, 3)}), and random numbers would take their place"
    remedy = "Choose another pooling (cls or mean if the pooler is missing), or another model"
    return ValueError(message(problem, remedy=remedy))
