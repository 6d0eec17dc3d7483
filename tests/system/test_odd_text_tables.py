"""Text tables whose first line, encoding or bytes would be misread in silence."""

from __future__ import annotations

import gzip
import zipfile

import pytest

import covalign as ca

ROWS = [("s0", 20, 0.0, "a"), ("s1", 21, 0.5, "b"), ("s2", 22, 1.0, "a"), ("s3", 23, 1.5, "b"), ("s4", 24, 2.5, "a")]
HEADER = "name,age,dose,sex\n"
BODY = "\n".join(",".join(map(str, row)) for row in ROWS)


def packed(text: bytes, kind: str, folder):
    path = folder / {"plain": "t.csv", "gzip": "t.csv.gz", "zip": "t.zip"}[kind]
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", text)
    else:
        path.write_bytes(gzip.compress(text) if kind == "gzip" else text)
    return path


@pytest.mark.parametrize("kind", ["plain", "gzip", "zip"])
@pytest.mark.parametrize(
    "text", [HEADER + BODY.replace(",23,", ",2\0,"), HEADER + BODY.replace("s3", "s\0"), "\0" * 99]
)
def test_zero_bytes_are_refused(tmp_path, kind, text):
    """pandas would read 2 where the file has 2, a zero byte, 3."""
    with pytest.raises(ca.exceptions.FileFormatError, match="zero bytes"):
        ca.read_table(packed(text.encode(), kind, tmp_path))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused(tmp_path, encoding):
    with pytest.raises(ca.exceptions.FileFormatError, match="UTF-8"):
        ca.read_table(packed((HEADER + BODY).encode(encoding), "plain", tmp_path))


SAMPLES = {
    "names, numbers and levels": BODY,
    "numbers and levels": "\n".join(",".join(map(str, row[1:])) for row in ROWS),
    "names and numbers": "\n".join(",".join(map(str, (*row[:3], "abcde"[i]))) for i, row in enumerate(ROWS)),
    "levels only": "a,x\nb,y\na,y\nb,x\na,x",
    "two lines of names": HEADER + HEADER + BODY,
    "names repeated below": f"{HEADER}{BODY}\n{HEADER}",
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_first_line_of_values_is_refused(tmp_path, kind):
    """It would be lost as a sample, or the second line of names would make text of all numbers."""
    with pytest.raises(ValueError, match="needs column names in its first line, got values"):
        ca.read_table(packed(SAMPLES[kind].encode(), "plain", tmp_path))


NAMES = {
    "years": "site,2001,2002,2003\nx1,1,2,3\nx2,2,3,4",
    "a level that is the name of its column": "name,age,male\n"
    + "\n".join(f"p{i},{30 + i},{'male' if i % 2 else 'female'}" for i in range(5)),
    "mixed names": "name,age,17,sex\n" + "\n".join(f"p{i},{30 + i},{i},{'mf'[i % 2]}" for i in range(5)),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_that_are_numbers_or_levels_are_names(tmp_path, kind):
    table = ca.read_table(packed(NAMES[kind].encode(), "plain", tmp_path))
    lines = NAMES[kind].splitlines()
    assert table.columns.tolist() == lines[0].split(",")[1:]
    assert len(table) == len(lines) - 1
