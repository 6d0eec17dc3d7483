"""Values as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def json_value(value: Any) -> Any:
    """Dicts, lists, numbers and text; arrays become lists, NaN and infinity become None, anything else its text.

    >>> json_value({"lam": float("nan"), "rows": (1, 2)})
    {'lam': None, 'rows': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(name): json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if hasattr(value, "tolist"):
        plain = value.tolist()
        return json_value(float(value) if hasattr(plain, "tolist") else plain)  # a long double stays one
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
