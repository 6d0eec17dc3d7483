"""What the texts of options mean: numbers, names with paths, limits; refused before any file is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from covalign._core.messages import message
from covalign.cli.options import Regime


def auto_or(number: type[int] | type[float], name: str, text: str) -> Any:
    """``"auto"``, or a number; the estimator checks its range."""
    if text == "auto":
        return text
    try:
        return number(text)
    except ValueError:
        kind = "a whole number" if number is int else "a number"
        raise ValueError(message(f"{name} needs 'auto' or {kind}", got=repr(text))) from None


def numbers(name: str, text: str, kind: str, example: str, fits: Callable[[float], bool]) -> list[float]:
    """Numbers, all of which fit, separated by commas."""
    with suppress(ValueError):
        found = [float(part) for part in text.split(",")]
        if all(map(fits, found)):
            return found
    remedy = f"write for example {example}"
    raise ValueError(message(f"{name} needs {kind}, separated by commas", got=repr(text), remedy=remedy))


def named_paths(texts: Sequence[str] | None, data: Path | None) -> dict[str, Path]:
    """The paths of ``--view NAME=PATH`` by name. Data are one file, or views."""
    found: dict[str, Path] = {}
    for text in texts or ():
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            remedy = f"write for example rna={text or 'rna.csv'}"
            raise ValueError(message("--view needs NAME=PATH", got=repr(text), remedy=remedy))
        if name in found:
            raise ValueError(message("views need distinct names", got=f"{name!r} more than once", remedy="rename one"))
        found[name] = Path(path)
    if (data is None) == (not found):
        need = "data are needed once, as one file or as --view NAME=PATH (which may be repeated)"
        raise ValueError(message(need, got="neither" if data is None else "both", remedy="choose one"))
    return found


def embedding_paths(texts: Sequence[str] | None) -> dict[str, Path]:
    """The paths of ``--embeddings NAME=PATH`` by name."""
    found: dict[str, Path] = {}
    for text in texts or ():
        name, _, path = text.partition("=")
        if not path:
            remedy = f"write for example clip={name}"
            raise ValueError(message("--embeddings needs NAME=PATH", got=repr(name), remedy=remedy))
        found[name] = Path(path)
    return found


def shrinkage_of(text: str) -> Any:
    """``"auto"``, or a number from 0 to 1."""
    value = auto_or(float, "--shrinkage", text)

    from covalign._core.checks import check_shrinkage

    return value if value == "auto" else check_shrinkage(value)


def supervision_of(text: str) -> Any:
    """``"auto"``, or a number from 1."""
    value = auto_or(float, "--supervision", text)

    from covalign._core.parameters import check_supervision

    check_supervision(value)
    return value


def regression_share_of(text: str) -> Any:
    """``"auto"``, or a number from 0 to 1."""
    value = auto_or(float, "--regression-share", text)

    from covalign._core.parameters import check_regression_share

    check_regression_share(value)
    return value


def checked_folds(folds: int) -> int:
    """A number of folds that makes sense; the estimators say where 0 does."""
    from covalign._core.checks import check_folds

    return folds and check_folds(folds)


def check_setting(regime: Regime | None, lam: float | None, max_coupling: float | None) -> None:
    """Refuse, before any data are read, settings that are out of range or contradict each other."""
    from covalign._core.checks import check_lam, check_max_coupling

    if lam is not None and max_coupling is not None:
        raise ValueError(message("--lam and --max-coupling exclude each other", remedy="Leave one of them out"))
    for name, value, check in (("--lam", lam, check_lam), ("--max-coupling", max_coupling, check_max_coupling)):
        if value is None:
            continue
        check(value)
        if regime not in (None, Regime.tunable):
            remedy = "leave one of the two out (--lam alone means tunable)"
            raise ValueError(message(f"{name} needs the tunable regime", got=f"--regime {regime}", remedy=remedy))


def limits(
    exact: bool, weight: Sequence[str] | None, uncoupled: Sequence[str] | None, max_coupling: float | None
) -> dict[str, Any]:
    """The arguments of ``at`` for --max-coupling, --exact, --weight and --uncoupled; empty without any of them."""
    if not exact:
        if weight or uncoupled:
            raise ValueError(message("--weight and --uncoupled need --exact", remedy="Add --exact"))
        return {} if max_coupling is None else {"max_coupling": max_coupling}
    if max_coupling is None and not uncoupled:
        raise ValueError(message("--exact needs --max-coupling or --uncoupled", remedy="Add one of them"))
    weights = dict(_weight(text) for text in weight) if weight else None
    pairs = [_pair(text) for text in uncoupled] if uncoupled else None
    return {"max_coupling": max_coupling, "exact": True, "weights": weights, "uncoupled": pairs}


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        remedy = "write for example dose=3"
        raise ValueError(message("--weight needs NAME=NUMBER", got=repr(text), remedy=remedy)) from None


def _pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first and second):
        raise ValueError(message("--uncoupled needs NAME,NAME", got=repr(text), remedy="write for example age,sex"))
    return first, second
