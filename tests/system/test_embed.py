"""Embedding: what a model gives directly is what we write, whatever the batches, interruptions and layouts."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import late

torch = late.importorskip("torch", reason="torch is not installed: pip install 'covalign[torch]'")
transformers = late.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("PIL", reason="pillow is not installed")

from PIL import Image  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import covalign as ca  # noqa: E402
from covalign.bridges import embed  # noqa: E402
from covalign.bridges.embed.journal import Log  # noqa: E402
from covalign.bridges.embed.vision import ImageEncoder  # noqa: E402
from covalign.bridges.embed.weights import locate  # noqa: E402
from covalign.cli import app  # noqa: E402
from tests import encoders  # noqa: E402

N = 11
CLASSES = {"cat": 4, "dog": 5, "newt": 2}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of small models, each made when it is first asked for."""
    place = tmp_path_factory.mktemp("models")

    def model(name: str, **options) -> Path:
        folder = place / "_".join([name, *map(str, options.values())])
        return folder if folder.exists() else getattr(encoders, name)(folder, **options)

    return model


@pytest.fixture
def gallery(tmp_path):
    return encoders.gallery(tmp_path / "images", CLASSES)


@pytest.fixture
def calls(monkeypatch):
    """Sizes of the batches that reach a model; ``calls.stop`` is the one at which the user interrupts."""

    class Calls(list):
        stop = None

    seen, plain = Calls(), ImageEncoder.__call__

    def counted(self, batch):
        if seen.stop is not None and len(seen) == seen.stop:
            raise KeyboardInterrupt
        seen.append(len(batch))
        return plain(self, batch)

    monkeypatch.setattr(ImageEncoder, "__call__", counted)
    return seen


def direct(kind, folder, read) -> np.ndarray:
    """The model by its own class, on pixels computed by hand, a picture at a time."""
    model = kind.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = [read(model, torch.from_numpy(encoders.pixels(i)[None])) for i in range(N)]
    return torch.cat(rows).numpy()


# -- features ---------------------------------------------------------------------------------------------------------


def test_clip_gives_projected_image_features(models, gallery):
    def by_hand(model, x):
        return model.visual_projection(model.vision_model(pixel_values=x).pooler_output)

    result = embed.images(gallery, models("clip"))
    assert result.pooling == "projected"
    assert result.Z.shape == (N, 10)
    assert result.Z.dtype == np.float32
    np.testing.assert_allclose(result.Z, direct(transformers.CLIPModel, models("clip"), by_hand), atol=2e-6)


def test_the_vision_half_of_clip_keeps_its_projection(models, gallery):
    kind = transformers.CLIPVisionModelWithProjection
    expected = direct(kind, models("clip_vision"), lambda model, x: model(pixel_values=x).image_embeds)
    np.testing.assert_allclose(embed.images(gallery, models("clip_vision")).Z, expected, atol=2e-6)


@pytest.mark.parametrize(("name", "kind"), [("dinov2", "Dinov2Model"), ("vit", "ViTModel"), ("convnet", "ResNetModel")])
def test_others_give_their_pooled_output(models, gallery, name, kind):
    def pooled(model, x):
        return model(pixel_values=x).pooler_output.flatten(1)

    result = embed.images(gallery, models(name))
    assert result.pooling == "pooler"
    np.testing.assert_allclose(result.Z, direct(getattr(transformers, kind), models(name), pooled), atol=2e-6)


def test_a_pooler_without_weights_is_never_used(models, gallery):
    """Classifiers such as google/vit-base-patch16-224 have none, and transformers would draw them at random."""
    folder = models("vit", classifier=True)
    kind = transformers.ViTForImageClassification

    def first_token(model, x):
        return model.vit(pixel_values=x).last_hidden_state[:, 0]

    result = embed.images(gallery, folder)
    assert result.pooling == "cls"
    np.testing.assert_allclose(result.Z, direct(kind, folder, first_token), atol=2e-6)
    with pytest.raises(ValueError, match=r"lacks weights.*pooler.*random.*cls or mean"):
        embed.images(gallery, folder, pooling="pooler")


def test_weights_that_are_missing_elsewhere_are_an_error(models, gallery, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(models("vit"), tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    dropped = next(name for name in weights if "layernorm" in name)
    save_file({k: v for k, v in weights.items() if k != dropped}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="lacks weights"):
        embed.images(gallery, folder)


def test_poolings_that_are_asked_for(models, gallery):
    def hidden(model, x):
        return model(pixel_values=x).last_hidden_state

    kind = transformers.Dinov2Model
    for pooling, read in {"cls": lambda m, x: hidden(m, x)[:, 0], "mean": lambda m, x: hidden(m, x).mean(1)}.items():
        result = embed.images(gallery, models("dinov2"), pooling=pooling)
        np.testing.assert_allclose(result.Z, direct(kind, models("dinov2"), read), atol=2e-6)
    with pytest.raises(ValueError, match="pooling needs one of auto, pooler, cls, mean, got 'max'"):
        embed.images(gallery, models("dinov2"), pooling="max")


@pytest.mark.parametrize("name", ["clip", "dinov2", "vit"])
def test_batches_of_any_size_give_the_same_numbers(models, gallery, name):
    whole = embed.images(gallery, models(name), batch_size=100).Z
    for batch_size, workers in ((1, 1), (3, 2), (4, 7)):
        rows = embed.images(gallery, models(name), batch_size=batch_size, workers=workers).Z
        np.testing.assert_allclose(rows, whole, atol=2e-6)


def test_half_precision_is_near(models, gallery):
    exact = embed.images(gallery, models("vit")).Z
    half = embed.images(gallery, models("vit"), dtype="bfloat16").Z
    assert half.dtype == np.float32
    assert 0 < np.abs(half - exact).max() < 0.1
    with pytest.raises(ValueError, match="dtype needs one of float32"):
        embed.images(gallery, models("vit"), dtype="int8")


def test_devices(models, gallery):
    assert embed.images(gallery, models("vit"), device="cpu").Z.shape == (N, 24)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"sees no device 'cuda:0' here, only .*cpu"):
            embed.images(gallery, models("vit"), device="cuda:0")


def test_the_settings_of_transformers_are_left_as_they_were(models, gallery):
    logging = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    embed.images(gallery, models("vit"))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


# -- layouts ----------------------------------------------------------------------------------------------------------


def test_a_folder_has_its_classes_in_subfolders(models, gallery):
    (gallery / "notes.txt").write_text("not an image")
    (gallery / "cat" / ".hidden.png").write_text("not one either")
    labels = embed.images(gallery, models("vit")).labels
    assert labels["name"].tolist() == ["cat"] * 4 + ["dog"] * 5 + ["newt"] * 2
    assert labels.index[:2].tolist() == ["cat/000.png", "cat/001.png"]
    assert labels.index.name == "file"


def test_a_flat_folder_has_no_classes(models, gallery):
    result = embed.images(gallery / "cat", models("vit"))
    assert result.Z.shape[0] == 4
    assert result.labels.columns.empty
    (gallery / "nothing").mkdir()
    with pytest.raises(ValueError, match="has no images"):
        embed.images(gallery / "nothing", models("vit"))


def test_a_csv_of_paths(models, gallery, tmp_path):
    table = pd.DataFrame({"name": ["cat", "newt", "cat"], "path": ["cat/001.png", "newt/000.png", "cat/000.png"]})
    table.to_csv(gallery / "list.csv", index=False)
    all_rows = embed.images(gallery, models("vit"))
    rows = [all_rows.labels.index.get_loc(path) for path in table["path"]]
    beside = embed.images(gallery / "list.csv", models("vit"))
    np.testing.assert_allclose(beside.Z, all_rows.Z[rows], atol=2e-6)
    assert beside.labels["name"].tolist() == ["cat", "newt", "cat"]
    table.rename(columns={"path": "where"}).to_csv(tmp_path / "list.csv", index=False)
    elsewhere = embed.images(tmp_path / "list.csv", models("vit"), path_column="where", root=gallery)
    np.testing.assert_array_equal(elsewhere.Z, beside.Z)
    with pytest.raises(ValueError, match=r"list.csv needs a column 'path', got 'name', 'where'"):
        embed.images(tmp_path / "list.csv", models("vit"))
    with pytest.raises(ValueError, match="needs a column 'colour'"):
        embed.images(gallery / "list.csv", models("vit"), label_columns=["colour"])


def test_tiny_imagenet_as_it_is_unpacked(models, tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    (root / "val" / "images").mkdir(parents=True)
    wnids = ["n2", "n1", "n3", "n1"]
    for i in range(4):
        encoders.picture(i).save(root / "val" / "images" / f"val_{i}.JPEG", quality=95)
    lines = [f"val_{i}.JPEG\t{wnid}\t0\t32\t44\t62\n" for i, wnid in enumerate(wnids)]
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    (root / "words.txt").write_text('n0\tentity\nn1\tcrane\nn2\tcrane, "hoist"\nn3\tgoldfish, Carassius auratus\n')
    for place in (root, root / "val"):
        labels = embed.images(place, models("vit")).labels
        assert labels.index.tolist() == [f"val_{i}.JPEG" for i in range(4)]
        assert labels["wnid"].tolist() == wnids
        assert labels["name"].tolist() == ["crane (n2)", "crane (n1)", "goldfish", "crane (n1)"]
    (root / "words.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"words\.txt"):
        embed.images(root, models("vit"))


def test_pictures_of_every_mode_are_seen_as_people_see_them(models, tmp_path):
    grey = np.random.default_rng(0).integers(0, 256, (32, 32), dtype=np.uint8)
    colour = Image.merge("RGB", [Image.fromarray(grey)] * 3)
    colour.save(tmp_path / "0_rgb.png")
    Image.fromarray(grey).save(tmp_path / "1_grey.png")
    Image.fromarray(grey.astype(np.uint16) * 256 + 77).save(tmp_path / "2_sixteen_bits.png")
    colour.convert("RGBA").save(tmp_path / "3_alpha.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    colour.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "4_turned.png", exif=exif)
    colour.quantize(256).save(tmp_path / "5_palette.png", transparency=b"\x80" * 256)
    Z = embed.images(tmp_path, models("vit")).Z
    np.testing.assert_allclose(Z, np.repeat(Z[:1], 6, axis=0), atol=2e-6)


# -- files ------------------------------------------------------------------------------------------------------------


def test_the_data_reader_takes_the_file(models, gallery, tmp_path):
    result = embed.images(gallery, models("dinov2"), tmp_path / "z.npz")
    data = ca.datasets.embedding(tmp_path / "z.npz")
    np.testing.assert_array_equal(data.Z, result.Z)
    assert data.covariates.columns.tolist() == ["cat", "dog", "newt"]
    assert data.covariates.sum().tolist() == [4, 5, 2]
    with np.load(tmp_path / "z.npz", allow_pickle=False) as arrays:
        assert arrays["files"].tolist() == result.labels.index.tolist()
        assert str(arrays["model"]) == str(models("dinov2"))
        assert str(arrays["revision"]).startswith("sha256:")
        assert all(arrays[name].dtype.kind != "O" for name in arrays.files)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_was_written_is_read_back(models, gallery, tmp_path):
    table = pd.DataFrame({"path": ["cat/001.png", "dog/000.png", "cat/000.png"], "size": [1.5, np.nan, 2.0]})
    table["shape"] = ["round", "square", "round"]
    table.to_csv(gallery / "list.csv", index=False)
    written = embed.images(gallery / "list.csv", models("vit"), tmp_path / "z.npz")
    back = embed.read(tmp_path / "z.npz")
    np.testing.assert_array_equal(back.Z, written.Z)
    pd.testing.assert_frame_equal(back.labels, written.labels, check_dtype=False)
    assert (back.model, back.revision, back.pooling) == (written.model, written.revision, written.pooling)
    covariates = ca.datasets.embedding(tmp_path / "z.npz").covariates
    assert covariates.columns.tolist() == ["size", "shape"] or "shape_square" in covariates.columns
    assert covariates["size"].isna().tolist() == [False, True, False]
    with pytest.raises(ValueError, match="written by covalign embed"):
        embed.read(gallery / "list.csv")


def test_classes_that_are_withheld(models, gallery, tmp_path):
    table = pd.DataFrame({"file": ["cat/001.png", "dog/000.png", "newt/000.png"], "name": ["cat", "dog", ""]})
    table.assign(labelled=[1, 0, 1]).to_csv(gallery / "list.csv", index=False)
    embed.images(gallery / "list.csv", models("vit"), tmp_path / "z.npz")
    covariates = ca.datasets.embedding(tmp_path / "z.npz").covariates
    assert covariates.columns.tolist() == ["cat"]
    assert covariates["cat"].tolist() == [1, 0, 0]


def test_a_column_of_identifiers_is_no_label(models, gallery, calls):
    files = [f"cat/{i:03d}.png" for i in range(4)]
    pd.DataFrame({"path": files, "id": list("abcd"), "x": range(4)}).to_csv(gallery / "list.csv", index=False)
    with pytest.raises(ValueError, match=r"'id' has a different text in every row.*label_columns"):
        embed.images(gallery / "list.csv", models("vit"))
    assert calls == []
    assert embed.images(gallery / "list.csv", models("vit"), label_columns=["x"]).labels.columns.tolist() == ["x"]


def test_numbers_alone(models, gallery, tmp_path):
    result = embed.images(gallery, models("vit"), tmp_path / "z.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy", allow_pickle=False), result.Z)
    with pytest.raises(ValueError, match=r"exists already\. Choose another"):
        embed.images(gallery, models("vit"), tmp_path / "z.npy")
    with pytest.raises(ValueError, match=r"\.npz \(with labels\) or \.npy"):
        embed.images(gallery, models("vit"), tmp_path / "z.csv")


# -- interruptions ----------------------------------------------------------------------------------------------------


def test_a_second_run_computes_only_the_rest(models, gallery, tmp_path, calls):
    calls.stop = 2
    out = tmp_path / "z.npz"
    with pytest.raises(KeyboardInterrupt):
        embed.images(gallery, models("vit"), out, batch_size=3)
    assert calls == [3, 3]
    assert not out.exists()
    calls.stop = None
    result = embed.images(gallery, models("vit"), out, batch_size=3)
    assert calls[2:] == [3, 2]
    assert result.computed == N - 6
    np.testing.assert_allclose(result.Z, embed.images(gallery, models("vit")).Z, atol=2e-6)
    del calls[:]
    again = embed.images(gallery, models("vit"), out)
    assert calls == []
    np.testing.assert_array_equal(again.Z, result.Z)


def test_another_model_does_not_go_on_with_the_rows_of_the_first(models, gallery, tmp_path, calls):
    calls.stop = 2
    with pytest.raises(KeyboardInterrupt):
        embed.images(gallery, models("vit"), tmp_path / "z.npz", batch_size=3)
    calls.stop = None
    result = embed.images(gallery, models("dinov2"), tmp_path / "z.npz")
    assert result.computed == N
    np.testing.assert_array_equal(result.Z, embed.images(gallery, models("dinov2")).Z)
    with pytest.raises(ValueError, match=r"exists already\. Choose another"):
        embed.images(gallery, models("vit"), tmp_path / "z.npz")
    assert embed.images(gallery, models("vit"), tmp_path / "z.npz", overwrite=True).computed == N


def test_images_that_changed_meanwhile_are_computed_again(models, gallery, tmp_path, calls):
    calls.stop = 2
    with pytest.raises(KeyboardInterrupt):
        embed.images(gallery, models("vit"), tmp_path / "z.npz", batch_size=3)
    calls.stop = None
    encoders.picture(99, side=33).save(gallery / "cat" / "001.png")  # changed
    (gallery / "cat" / "002.png").unlink()  # gone
    encoders.picture(98).save(gallery / "cat" / "0005.png")  # new, in the middle of the order
    result = embed.images(gallery, models("vit"), tmp_path / "z.npz", batch_size=3)
    assert result.computed == N - 6 + 2
    fresh = embed.images(gallery, models("vit"))
    assert result.labels.equals(fresh.labels)
    np.testing.assert_allclose(result.Z, fresh.Z, atol=2e-6)


def test_a_log_that_was_cut_short_keeps_what_is_whole(tmp_path):
    digests = [bytes([i]) * 16 for i in range(4)]
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    with Log(tmp_path / "log", "key") as log:
        log.append(digests, rows)
    stored = tmp_path / "log" / "rows.f32"
    stored.write_bytes(stored.read_bytes()[:-5])
    with Log(tmp_path / "log", "key") as log:
        assert [digest in log for digest in digests] == [True, True, True, False]
        log.append([digests[3]], rows[:1] * 7)
        np.testing.assert_array_equal(log.gather(digests[::-1]), np.vstack([rows[0] * 7, rows[2], rows[1], rows[0]]))
        with pytest.raises(ValueError, match="Another run is writing"):
            Log(tmp_path / "log", "key")
    with Log(tmp_path / "log", "another key") as log:
        assert len(log) == 0


# -- broken images ----------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(gallery):
    """One file that is no image, and one that ends too early: only decoding tells."""
    (gallery / "cat" / "001.png").write_text("<html>404</html>")
    whole = (gallery / "dog" / "002.png").read_bytes()
    (gallery / "dog" / "002.png").write_bytes(whole[: len(whole) // 2])
    return gallery


def test_broken_images_are_an_error_that_names_them_all(models, damaged, tmp_path, calls):
    with pytest.raises(ValueError, match=r"(?s)2 image\(s\) cannot be opened.*cat/001\.png.*dog/002\.png"):
        embed.images(damaged, models("vit"), tmp_path / "z.npz", batch_size=4)
    assert not (tmp_path / "z.npz").exists()
    assert sum(calls) == N - 2
    encoders.picture(1).save(damaged / "cat" / "001.png")  # repaired: the rest was kept
    result = embed.images(damaged, models("vit"), tmp_path / "z.npz", skip_broken=True)
    assert result.computed == 1
    assert list(result.failed) == ["dog/002.png"]


def test_broken_images_are_left_out_when_asked(models, damaged, tmp_path):
    result = embed.images(damaged, models("vit"), tmp_path / "z.npz", batch_size=2, skip_broken=True)
    assert list(result.failed) == ["cat/001.png", "dog/002.png"]
    assert "identify" in result.failed["cat/001.png"]
    assert result.labels["name"].value_counts().to_dict() == {"cat": 3, "dog": 4, "newt": 2}
    kept = [i for i in range(N) if i not in (1, 6)]
    by_hand = direct(transformers.ViTModel, models("vit"), lambda m, x: m(pixel_values=x).pooler_output)
    np.testing.assert_allclose(result.Z, by_hand[kept], atol=2e-6)
    assert ca.datasets.embedding(tmp_path / "z.npz").covariates.sum().tolist() == [3, 4, 2]
    with pytest.raises(ValueError, match=r"2 image\(s\) cannot be opened"):  # not asked for this time
        embed.images(damaged, models("vit"), tmp_path / "z.npz")


def test_nothing_but_broken_images(models, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_text("")
    with pytest.raises(ValueError, match=r"1 image\(s\) cannot be opened"):
        embed.images(tmp_path / "images", models("vit"), skip_broken=True)


def test_a_missing_file_of_a_csv_is_a_broken_image(models, gallery):
    (gallery / "list.csv").write_text("path\ncat/000.png\ncat/none.png\n")
    assert list(embed.images(gallery / "list.csv", models("vit"), skip_broken=True).failed) == ["cat/none.png"]


# -- where weights come from ------------------------------------------------------------------------------------------


def cached(model: Path, cache: Path, name: str, commit: str) -> Path:
    """A model as the hub's client leaves it in its cache."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    return shutil.copytree(model, repository / "snapshots" / commit)


def test_a_name_is_looked_up_in_the_cache(models, gallery, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached(models("clip"), tmp_path / "cache", "openai/clip-vit-large-patch14", commit)
    result = embed.images(gallery, "openai/clip-vit-large-patch14", cache=tmp_path / "cache", offline=True)
    assert (result.model, result.revision) == ("openai/clip-vit-large-patch14", commit)
    np.testing.assert_array_equal(result.Z, embed.images(gallery, models("clip")).Z)


def test_offline_and_missing_says_what_to_download_and_where_to_put_it(gallery, tmp_path):
    name, cache = "facebook/dinov2-base", tmp_path / "cache"
    with pytest.raises(FileNotFoundError) as caught:
        embed.images(gallery, name, cache=cache, offline=True)
    said = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert f"hf download {name} --include '*.json' '*.txt' '*.model' '*.safetensors'" in said
    assert f"https://huggingface.co/{name}/tree/main" in said
    assert str(cache) in said
    assert "pass it as the model" in said
    with pytest.raises(FileNotFoundError, match="a folder with a model, or its name"):
        embed.images(gallery, tmp_path / "nowhere")


def test_half_a_download_counts_as_missing(models, gallery, tmp_path):
    folder = cached(models("vit"), tmp_path / "cache", "org/vit", "a" * 40)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="hf download org/vit"):
        embed.images(gallery, "org/vit", cache=tmp_path / "cache", offline=True)


def test_a_folder_that_changes_is_another_model(models, tmp_path):
    folder = shutil.copytree(models("vit"), tmp_path / "model")
    before = locate(folder).revision
    assert before == locate(models("vit")).revision
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert locate(folder).revision != before


# -- nothing in a model is executed -----------------------------------------------------------------------------------


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


def test_pickled_weights_are_refused_and_never_opened(models, gallery, tmp_path):
    folder, marker = shutil.copytree(models("vit"), tmp_path / "model"), tmp_path / "executed"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(marker)))
    embed.images(gallery, folder)  # the safetensors beside it are used
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"weights only as 'pytorch_model\.bin'.*can run any code"):
        embed.images(gallery, folder)
    assert not marker.exists()


def test_code_beside_a_model_is_not_run(models, gallery, tmp_path):
    folder, marker = shutil.copytree(models("vit"), tmp_path / "model"), tmp_path / "executed"
    (folder / "modeling_own.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\nclass OwnConfig: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    embed.images(gallery, folder)  # its type is known: the class of transformers is used
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own"}))
    with pytest.raises(ValueError, match="cannot be read as a model that transformers knows"):
        embed.images(gallery, folder)
    assert not marker.exists()


def test_steps_of_foreign_classes_and_pickled_steps_are_refused(models, tmp_path):
    folder = shutil.copytree(models("bert", words="a b c"), tmp_path / "model")
    steps = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    foreign = {"idx": 1, "name": "1", "path": "1_Own", "type": "own_package.Own"}
    (folder / "modules.json").write_text(json.dumps([*steps, foreign]))
    with pytest.raises(ValueError, match=r"needs code of its own \('own_package\.Own'\)"):
        embed.texts(["a b"], folder)
    dense = {"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*steps, dense]))
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(tmp_path / "executed")))
    with pytest.raises(ValueError, match=r"1_Dense.* has weights only as 'pytorch_model\.bin'"):
        embed.texts(["a b"], folder)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_a_folder_without_a_file_names_it(models, gallery, tmp_path, file):
    folder = shutil.copytree(models("vit"), tmp_path / "model")
    (folder / file).unlink()
    with pytest.raises(ValueError, match=file.replace(".", r"\.")):
        embed.images(gallery, folder)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_damaged_file_is_an_error_of_ours(models, gallery, tmp_path, file):
    folder = shutil.copytree(models("vit"), tmp_path / "model")
    (folder / file).write_bytes((folder / file).read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read as"):
        embed.images(gallery, folder)


# -- texts ------------------------------------------------------------------------------------------------------------

SENTENCES = ["the cat sat", "a dog", "the newt swims in a pond and the dog barks", "a cat", "the pond", "a dog"]


def test_plain_transformers_give_the_mean_over_a_texts_own_tokens(models, tmp_path):
    folder = models("bert", words=" ".join(SENTENCES))
    tokenizer, model = (
        transformers.AutoTokenizer.from_pretrained(folder),
        transformers.BertModel.from_pretrained(folder),
    )
    model.eval()
    with torch.no_grad():
        alone = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in SENTENCES]
    expected = torch.stack(alone).numpy()
    for batch_size in (1, 4, 10):
        result = embed.texts(SENTENCES, folder, batch_size=batch_size)
        np.testing.assert_allclose(result.Z, expected, atol=2e-6)
    assert result.computed == 5  # one of them twice
    long = embed.texts(["cat " * 100], folder).Z
    np.testing.assert_allclose(long, embed.texts(["cat " * 14], folder).Z, atol=2e-6)  # 16 places with [CLS], [SEP]


def test_texts_of_a_csv_column(models, tmp_path):
    folder = models("bert", words=" ".join(SENTENCES))
    table = pd.DataFrame({"animal": ["cat", "dog", "newt", "cat", "", "dog"], "said": SENTENCES})
    table.to_csv(tmp_path / "said.csv", index=False)
    result = embed.texts(tmp_path / "said.csv", folder, tmp_path / "z.npz", text_column="said")
    np.testing.assert_array_equal(result.Z, embed.texts(SENTENCES, folder).Z)
    covariates = ca.datasets.embedding(tmp_path / "z.npz").covariates
    assert covariates.columns.tolist() == ["cat", "dog", "newt"]
    assert covariates.sum(axis=1).tolist() == [1, 1, 1, 1, 0, 1]
    with pytest.raises(ValueError, match=r"said\.csv needs a column 'text', got 'animal', 'said'"):
        embed.texts(tmp_path / "said.csv", folder)
    (tmp_path / "gaps.csv").write_text('text\n"a"\n""\n')
    with pytest.raises(ValueError, match=r"needs a 'text', got 1 empty cell\(s\)"):
        embed.texts(tmp_path / "gaps.csv", folder)


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command(models, damaged, tmp_path):
    out = str(tmp_path / "z.npz")
    arguments = ["embed", str(damaged), "--model", str(models("vit")), "-o", out, "--batch-size", "3"]
    failed = CliRunner().invoke(app, arguments)
    assert failed.exit_code == 2
    assert "cat/001.png" in failed.output
    done = CliRunner().invoke(app, [*arguments, "--skip-broken"])
    assert done.exit_code == 0
    assert "skipped: cat/001.png" in done.stderr
    assert "9 x 24 (0 computed now)" in done.stdout
    assert len(ca.datasets.embedding(out).Z) == 9


def test_the_command_for_texts(models, tmp_path):
    folder = models("bert", words=" ".join(SENTENCES))
    pd.DataFrame({"said": SENTENCES}).to_csv(tmp_path / "said.csv", index=False)
    arguments = ["embed", str(tmp_path / "said.csv"), "--text-column", "said", "-m", str(folder)]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "z.npy")])
    assert done.exit_code == 0
    assert np.load(tmp_path / "z.npy").shape == (6, 24)


@pytest.mark.thorough  # a process of its own imports torch and transformers
def test_a_run_in_a_pipe_is_quiet(models, gallery, tmp_path):
    arguments = ["embed", str(gallery), "--model", str(models("clip")), "-o", str(tmp_path / "z.npz")]
    command = [sys.executable, "-m", "covalign", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{tmp_path / 'z.npz'}: 11 x 10 (11 computed now)")
