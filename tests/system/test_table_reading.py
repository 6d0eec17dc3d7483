"""Tables as text are read as they are written, or refused."""

from __future__ import annotations

import pytest

import covalign as ca

REFUSED = {
    "rows one number longer": ("age,dose\n1,2,3\n4,5,6\n7,8,9\n", r"more \(3\) in row 1"),
    "one row longer": ("age,dose\n1,2\n4,5,6\n7,8\n", r"more \(3\) in row 2"),
    "rows shorter": ("age,dose,x\n1,2\n4,5\n", r"fewer \(2\) in row 1"),
    "one row shorter": ("age,dose,x\n1,2,3\n4,6\n7,8,9\n", r"fewer \(2\) in row 2"),
    "separators at the ends": ("age,dose\n1,2,\n4,5,\n", r"more \(3\) in row 1"),
    "no header": ("40,1.5\n52,2.5\n61,3.5\n", "needs column names in its first line"),
    "no header, rising": ("1,2,3\n4,5,6\n7,8,9\n", "needs column names in its first line"),
    "no header, repeated": ("1,1\n2,3\n", "needs column names in its first line"),
    "no header but names": ("s1,2,3\ns2,5,6\ns3,8,9\n", "needs column names in its first line"),
    "no header, falling": ("anna,3.5,2\nbert,5,6\ncarl,8,9\n", "needs column names in its first line"),
    "repeated names": ("a,a\n1,2\n3,4\n", "distinct column names, got 'a'"),
    "an empty name": (",dose\na,1\n,2\n", "every row needs a name"),
}
READ = {
    "names as R writes them": ("age,dose\na,2,3\nb,5,6\n", None, ["a", "b"], ["age", "dose"]),
    "numbers in quotes as R writes them": ('age,dose\n"1",2,3\n"2",5,6\n', None, ["1", "2"], ["age", "dose"]),
    "zeros in names": ("id,dose\n007,1\n008,2\n", None, ["007", "008"], ["dose"]),
    "zeros in chosen names": ("dose,id\n1,007\n2,008\n", "id", ["007", "008"], ["dose"]),
    "zeros below an empty header": (",dose\n007,1\n008,2\n", None, ["007", "008"], ["dose"]),
    "NA as a name": ("id,dose\nNA,1\nb,2\nnull,3\n", None, ["NA", "b", "null"], ["dose"]),
    "years": ("id,2019,2020\na,1,2\nb,3,4\n", None, ["a", "b"], ["2019", "2020"]),
    "numbers of columns": ("0,1\n5.5,6.5\n7.5,8.5\n", None, [0, 1], ["0", "1"]),
    "whole numbers with a mark": ("age,dose\n40,1\n-,2\n51,3\n60,4\n", None, [0, 1, 2, 3], ["age", "dose"]),
    "whole numbers with a word": ("age,dose\n40,1\nunknown,2\n51,3\n", None, [0, 1, 2], ["age", "dose"]),
    "whole numbers with a gap": ("age,dose\n40,1\nNA,2\n51,3\n", None, [0, 1, 2], ["age", "dose"]),
    "names that begin with numbers": ("id,dose\n101,1\n102,2\n103b,3\n", None, ["101", "102", "103b"], ["dose"]),
    "gaps in the last column": ("id,dose\na,1\nb,\n", None, ["a", "b"], ["dose"]),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_table_that_would_be_read_wrong_is_refused(kind, suffix, tmp_path):
    text, why = REFUSED[kind]
    file = tmp_path / f"table{suffix}"
    file.write_text(text if suffix == ".csv" else text.replace(",", "\t"))
    with pytest.raises(ValueError, match=why):
        ca.read_table(file)


@pytest.mark.parametrize("kind", READ)
def test_rows_and_columns_keep_their_names(kind, tmp_path):
    text, index, rows, columns = READ[kind]
    file = tmp_path / "table.csv"
    file.write_text(text)
    table = ca.read_table(file, index)
    assert table.index.tolist() == rows
    assert table.columns.tolist() == columns
