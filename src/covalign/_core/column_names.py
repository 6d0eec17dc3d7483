"""Names of columns that stand beside columns which users named."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def apart(name: str, taken: Collection[str]) -> str:
    """The name, with underscores before it where it is taken.

    >>> apart("view", ["age", "view"]), apart("view", ["age"])
    ('_view', 'view')
    """
    while name in taken:
        name = f"_{name}"
    return name


def with_deviations(names: Sequence[str]) -> list[str]:
    """The names of factors, then those of their standard deviations: ``age_std``, or ``_age_std`` where it is taken.

    >>> with_deviations(["a", "a_std"])
    ['a', 'a_std', '_a_std', 'a_std_std']
    """
    made = list(names)
    for name in names:
        made.append(apart(f"{name}_std", made))
    return made
