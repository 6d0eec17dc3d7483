"""What users are told: data sets, and embedding of images and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from covalign._core.validation.base import some
from covalign.exceptions import DataNotFoundError, WeightsNotFoundError


def data_not_found(path: Any, need: str) -> DataNotFoundError:
    return DataNotFoundError(f"{need} is needed, got no {str(path)!r}: correct the path, or put the file there.")


def unreadable_data(path: Any, need: str, why: Any) -> ValueError:
    return ValueError(
        f"{need} is needed, got {str(path)!r}, which cannot be read as one ({why}): download or export it again."
    )


def foreign_rda(path: Any, need: str, got: Iterable[Any]) -> ValueError:
    return ValueError(
        f"mixOmics' breast.TCGA needs {need}, got {some(got) or 'nothing of the kind'} in {str(path)!r}: save it in R "
        "with  data(breast.TCGA, package = 'mixOmics'); save(breast.TCGA, file = 'breast.TCGA.rda')"
    )


def check_part(part: Any) -> str:
    """The training or the test part."""
    if part in ("train", "test"):
        return str(part)
    raise ValueError(f"part needs 'train' or 'test', got {part!r}: use one of these.")


def only_training_part(path: Any) -> ValueError:
    return ValueError(
        f"part='test' needs mixOmics' breast.TCGA.rda, got the folder {str(path)!r}, which has the training part only: "
        "pass the path of the .rda file, or part='train'."
    )


def table_without_column(table: str, column: str, have: Iterable[Any]) -> ValueError:
    return ValueError(f"{table} needs a column {column!r}, got {some(have) or 'none'}: rename or add it.")


def columns_not_numeric(table: str, columns: Iterable[Any]) -> ValueError:
    return ValueError(
        f"{table} needs sample names in the first column and numbers in all others, got text in column "
        f"{some(columns)}: convert or drop it."
    )


def sample_counts_differ(first: str, second: str, n_first: int, n_second: int) -> ValueError:
    return ValueError(
        f"{first} and {second} need the same number of rows (samples), got {n_first} and {n_second}: "
        "one row of each belongs to one sample."
    )


def order_unknown(unnamed: str, first: str, second: str) -> ValueError:
    return ValueError(
        f"{unnamed} needs sample names where tables differ in their order, got none, and {first} and {second} differ: "
        f"name its samples, or bring {first} and {second} into the same order."
    )


def covariates_or_labels(path: Any, got: Iterable[Any]) -> ValueError:
    return ValueError(
        f"an .npz embedding needs an array Z and either Y or labels, got {some(got) or 'none'} in {str(path)!r}: "
        "save it with  numpy.savez(path, Z=Z, labels=labels)  or  numpy.savez(path, Z=Z, Y=Y, names=names)"
    )


def labels_not_text(dtype: Any, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"labels needs one name (text) per row of Z, got values of type {dtype} and shape {shape}: "
        "save labels.astype(str) of one dimension, or 0/1 columns as Y."
    )


def names_differ_from_columns(need: int, got: tuple[int, ...]) -> ValueError:
    return ValueError(f"names needs {need} names, one per column of Y, got shape {got}: save as many as Y has columns.")


def labelled_not_binary(path: Any, values: Iterable[Any]) -> ValueError:
    return ValueError(
        f"labelled needs 1 (the class is shown) or 0 (it is withheld) in every row, got {some(values)} in "
        f"{str(path)!r}: recode it, or leave it out to show all classes."
    )


def nameless_class(path: Any, rows: Sequence[Any]) -> ValueError:
    return ValueError(
        f"every labelled row needs the name of its class, got an empty one in {len(rows)} row(s) of {str(path)!r}, "
        f"first at row {some(rows, 3)}: fill it in, or set labelled = 0 there."
    )


def shared_class_names(path: Any, names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"labelled classes need distinct names, got {some(names)} for more than one wnid in {str(path)!r}: "
        "rename one of them."
    )


def no_labelled_class(path: Any) -> ValueError:
    return ValueError(f"at least one labelled class is needed, got none in {str(path)!r}: set labelled = 1 somewhere.")


def no_images(folder: Any, suffixes: Iterable[str]) -> ValueError:
    return ValueError(
        f"a folder of images is needed, got none below {str(folder)!r} with a suffix of {' '.join(suffixes)}: correct "
        "the path, or list the files in a CSV with a column 'path'."
    )


def empty_cells(file: Any, column: str, rows: Sequence[Any]) -> ValueError:
    got = f"an empty one in {len(rows)} row(s), first at row {some(rows, 3)}" if rows else "no rows"
    return ValueError(f"every row of {str(file)!r} needs a {column!r}, got {got}: fill it in, or drop the rows.")


def distinct_labels(column: str) -> ValueError:
    return ValueError(
        f"a column of labels needs values that several rows share, got a different text in every row of {column!r}: "
        "name the columns to use with label_columns=."
    )


def broken_images(broken: dict[str, str]) -> ValueError:
    listed = "".join(f"\n  {name}: {why}" for name, why in list(broken.items())[:50])
    more = f"\n  and {len(broken) - 50} more" if len(broken) > 50 else ""
    return ValueError(
        f"every image needs to open, got {len(broken)} that did not; the others are computed and kept. Repair or "
        f"remove these, or leave them out with skip_broken=True, and run the same again:{listed}{more}"
    )


def features_not_finite(names: Sequence[str]) -> ValueError:
    return ValueError(
        f"features need to be finite numbers, got NaN or infinity for {some(names, 3)}: use float32 (float16 overflows "
        "in some models), or check the weights."
    )


def not_an_array_file(path: Any) -> ValueError:
    return ValueError(f"rows go to an .npz (with labels) or an .npy (alone), got {str(path)!r}: choose one of these.")


def not_one_of(what: str, got: Any, known: Sequence[str]) -> ValueError:
    return ValueError(f"{what} needs one of {', '.join(known)}, got {got!r}: use one of these names.")


def no_device(device: str, there: Sequence[str]) -> ValueError:
    return ValueError(
        f"a device that torch sees is needed, got {device!r}, and here are {', '.join(there)}: choose one of these or "
        "'auto', or install a build of torch for it."
    )


def check_count(what: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise ValueError(f"{what} needs a whole number of at least 1, got {value!r}: choose one.")


def weights_not_found(name: str, revision: str | None, cache: Any, why: Any) -> WeightsNotFoundError:
    version = f" --revision {revision}" if revision else ""
    reason = str(why).splitlines()[0] if str(why) else type(why).__name__
    return WeightsNotFoundError(
        f"the weights of {name!r} are needed, got none: they are not in the cache {str(cache)!r}, and could not be "
        f"downloaded ({reason}). On a machine with internet run\n"
        f"  hf download {name}{version} --include '*.json' '*.txt' '*.model' '*.safetensors' --local-dir model\n"
        f"(or save these files from https://huggingface.co/{name}/tree/{revision or 'main'}; config.json, "
        "model.safetensors and preprocessor_config.json or tokenizer.json are the least), bring the folder here and "
        "pass it as the model (model='model'); or, without --local-dir, bring what it put into the cache there to the "
        "cache here."
    )


def no_model(folder: Any, file: str) -> ValueError:
    return ValueError(
        f"a model's folder needs config.json and its weights as .safetensors, got {str(folder)!r} without {file}: "
        "pass the folder that save_pretrained wrote, or download it again."
    )


def pickled_weights(folder: Any, files: Iterable[Any]) -> ValueError:
    return ValueError(
        f"weights are needed as .safetensors, got only {some(getattr(file, 'name', file) for file in files)} in "
        f"{str(folder)!r}, and loading a pickle can run any code: use another revision of the model, or convert it "
        "where you trust it, by model.save_pretrained(folder)."
    )


def code_of_its_own(folder: Any, what: str) -> ValueError:
    return ValueError(
        f"a model without code of its own is needed, got {what!r} in {str(folder)!r}: only the classes of transformers "
        "and sentence-transformers are run; choose a model that they know."
    )


def unusable_model(folder: Any, need: str, why: Any) -> ValueError:
    reason = next((line.strip() for line in str(why).splitlines() if line.strip()), type(why).__name__)
    return ValueError(
        f"{need} is needed, got the folder {str(folder)!r}, which cannot be read as one ({reason}): download it again, "
        "or choose another model."
    )


def random_weights(folder: Any, names: Iterable[str]) -> ValueError:
    return ValueError(
        f"all weights of a model are needed, got none for {some(names, 3)} in {str(folder)!r}, and random ones would "
        "take their place: choose another pooling (cls or mean where it is the pooler), or another model."
    )


def no_pooler(folder: Any) -> ValueError:
    return ValueError(
        f"pooling='pooler' needs a model with a pooled output, got {str(folder)!r}, which has none: use 'cls' or "
        "'mean'."
    )
