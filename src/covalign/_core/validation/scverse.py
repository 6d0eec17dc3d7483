"""What users are told: AnnData and MuData objects, and what is written into them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import meant, some


def _nearest(wrong: Iterable[Any], have: Iterable[Any]) -> str:
    question = meant(wrong, have, 3)
    return f"{question} " if question else ""


def not_annotated(got: Any) -> ValueError:
    return ValueError(
        f"an AnnData or a MuData is needed, got {type(got).__name__}: put the rows into anndata.AnnData(X, obs=...), "
        "or use LatentAligner or InformedFactorAnalysis, which take arrays and tables."
    )


def shared_variables(axis: Any) -> ValueError:
    return ValueError(
        f"modalities need to share cells (a MuData with axis=0), got axis={axis}: build MuData(..., axis=0), or give "
        "one modality."
    )


def check_key_added(key: Any) -> str:
    """A name under which obsm can be written to a file."""
    if isinstance(key, str) and key not in ("", ".", "X_") and "/" not in key and "\0" not in key:
        return key
    raise ValueError(f"key_added needs a name without '/', got {key!r}: choose for example 'X_aligned'.")


def key_taken(key: str, where: str) -> ValueError:
    return ValueError(
        f"key_added needs a name of its own, got {key!r}, and {where} already holds something that no earlier run "
        "under this name wrote: choose another name, or delete it first."
    )


def no_columns_named() -> ValueError:
    return ValueError("covariates needs names of columns of obs, got none: name at least one, covariates=['age'].")


def named_twice(names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"a column needs to be named once, as a covariate or as a confounder, got {some(names)} more than once: drop "
        "the repetition."
    )


def unknown_obs(wrong: Sequence[str], have: Sequence[Any]) -> ValueError:
    return ValueError(
        f"columns of obs are needed, got {some(wrong)}: {_nearest(wrong, have)}There are {some(have, 20) or 'none'}."
    )


def ambiguous_obs(name: str, candidates: Sequence[str]) -> ValueError:
    return ValueError(
        f"a column of one modality is needed, got {name!r}, which several have: say which, "
        f"{' or '.join(map(repr, candidates))}, or put one column into mdata.obs."
    )


def repeated_obs(name: str) -> ValueError:
    return ValueError(f"obs needs one column of a name, got {name!r} more than once: rename or drop the others.")


def unknown_representation(rep: Any, have: Sequence[str], where: str, holders: Sequence[str]) -> ValueError:
    inside = f" Give the modality that has it, mdata[{holders[0]!r}]." if holders else ""
    return ValueError(
        f"use_rep needs an array of {where}, got {rep!r}: {_nearest([rep], have)}There are {some(have, 20) or 'none'}."
        f"{inside}"
    )


def backed_copy(what: str) -> ValueError:
    return ValueError(
        f"{what} needs the data in memory, got an object backed by a file: leave copy=False and give the whole object, "
        "or call .to_memory() first."
    )


def no_result(key: str, have: Sequence[str]) -> ValueError:
    return ValueError(
        f"a result of covalign.scverse is needed, got none under {key!r}: {_nearest([key], have)}There are "
        f"{some(have) or 'none'}; align(...) and ifa(...) write them."
    )


def no_stored_model(key: str) -> ValueError:
    return ValueError(
        f"a stored aligner is needed, got a result without one under {key!r}: run align(..., store_model=True), or "
        "keep the aligner that align(..., return_model=True) returns."
    )


def damaged_model(key: str, error: Any) -> ValueError:
    return ValueError(
        f"a stored aligner is needed, got one that cannot be read under {key!r} ({type(error).__name__}: {error}): run "
        "align again."
    )


def cells_not_in_obs(modality: str, names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"mdata.obs needs the cells of every modality, got {len(names)} in {modality!r} that it lacks "
        f"({some(names, 3)}): call mdata.update() first."
    )


def repeated_cells(where: str, names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"cells are matched by name and need distinct ones, got {some(names, 3)} more than once in {where}: call "
        "obs_names_make_unique() on it."
    )


def repeated_features(where: str, names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"features are matched by name and need distinct ones, got {some(names, 3)} more than once in {where}: call "
        "var_names_make_unique(), or rename the columns."
    )


def unknown_modalities(wrong: Sequence[Any], have: Sequence[str]) -> ValueError:
    return ValueError(
        f"modalities that are there are needed, got {some(wrong) or 'none'}: {_nearest(wrong, have)}There are "
        f"{some(have, 20)}."
    )


def unknown_mask(name: str, have: Sequence[Any], where: str) -> ValueError:
    return ValueError(
        f"mask_var needs a column of var, got {name!r}, which {where} lacks: {_nearest([name], have)}There are "
        f"{some(have, 20) or 'none'}; mask_var=None takes all features."
    )


def not_a_mask(where: str, need: int, got: str) -> ValueError:
    return ValueError(
        f"mask_var needs True or False for each of the {need} features of {where}, got {got}: pass such an array, or "
        "the name of a boolean column of var."
    )


def nothing_selected(where: str) -> ValueError:
    return ValueError(f"mask_var needs to leave some features, got none of {where}: choose others, or mask_var=None.")


def features_not_there(names: Sequence[str]) -> ValueError:
    return ValueError(
        f"the features of the fit are needed, got an object without {len(names)} of them ({some(names)}): add them, or "
        "align again with the features that both have."
    )


def unstorable_names(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"names that a file can hold are needed, got {', '.join(map(repr, names))}: rename the column of obs, or its "
        "levels."
    )
