"""Covariates as people keep them become named numeric columns, or an error that names the column."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.tables.covariates import Encoding, as_frame, encode, match_rows, refuse_unused_reference


def test_every_kind_of_column():
    Y = pd.DataFrame(
        {
            "age": [40, 52, 61, 38],
            "smoker": [True, False, True, True],
            "sex": ["F", "M", "M", "F"],
            "subtype": pd.Categorical(["LumA", "Basal", "Her2", "LumA"]),
            "stage": pd.Categorical(["II", "I", "IV", "II"], categories=["I", "II", "III", "IV"], ordered=True),
            "dose": pd.array([1, 2, 3, 4], dtype="Int64"),
        }
    )
    encoded = encode(Y, drop_first=False)
    expected = pd.DataFrame(
        {
            "age": [40.0, 52, 61, 38],
            "smoker": [1.0, 0, 1, 1],
            "sex_M": [0.0, 1, 1, 0],
            "subtype_Basal": [0.0, 1, 0, 0],
            "subtype_Her2": [0.0, 0, 1, 0],
            "subtype_LumA": [1.0, 0, 0, 1],
            "stage": [1.0, 0, 3, 1],
            "dose": [1.0, 2, 3, 4],
        }
    )
    pd.testing.assert_frame_equal(encoded, expected)


def test_the_first_level_has_no_column_by_default():
    Y = pd.DataFrame({"subtype": ["b", "a", "c", "a"], "sex": ["F", "M", "M", "F"]})
    assert encode(Y).columns.tolist() == ["subtype_b", "subtype_c", "sex_M"]
    pd.testing.assert_frame_equal(encode(Y), encode(Y, drop_first=False).drop(columns="subtype_a"))


def test_the_order_of_rows_does_not_choose_the_reference_level():
    Y = pd.DataFrame({"subtype": ["b", "a", "c", "a"]})
    assert {tuple(encode(Y.iloc[list(order)]).columns) for order in permutations(range(4))} == {
        ("subtype_b", "subtype_c")
    }


def test_a_declared_order_chooses_the_reference_level():
    Y = pd.Series(pd.Categorical(["a", "b", "c", "a"], categories=["c", "a", "b"]), name="g")
    assert encode(Y).columns.tolist() == ["g_a", "g_b"]


def test_categories_say_which_level_has_no_column():
    Y = pd.DataFrame({"age": [1, 2, 3, 4], "sex": ["F", "M", "M", "F"], "g": pd.Categorical([3, 1, 2, 1])})
    (found,) = Encoding.learn(Y).categories("factors").items()
    assert found[0] == "g"
    assert (found[1]["reference"], found[1]["levels"]) == ("1", ["1", "2", "3"])
    assert found[1]["about"].startswith("g: 2 factors, one for every level except the reference level '1'.")
    (every,) = Encoding.learn(Y, drop_first=False).categories().values()
    assert every["reference"] is None
    assert every["about"].startswith(
        "g: 3 dimensions, one for every level. 3 levels have only 2 independent directions"
    )


def test_a_reference_level_without_rows_is_refused():
    Y = pd.DataFrame({"g": pd.Categorical(["b", "c", "d", "b"], categories=["a", "b", "c", "d"])})
    encoding = Encoding.learn(Y, declared=True)
    with pytest.raises(ValueError, match="the reference level of 'g' needs rows, got none with 'a': declare another"):
        refuse_unused_reference(encoding, [4, 4, 4], encoding.numbers(Y).sum(axis=0))
    Y.loc[0, "g"] = "a"
    refuse_unused_reference(encoding, [4, 4, 4], encoding.numbers(Y).sum(axis=0))
    refuse_unused_reference(Encoding.learn(Y, drop_first=False), [4] * 4, [0, 1, 1, 2])  # has no reference level


@pytest.mark.parametrize(
    ("Y", "names"),
    [
        (np.arange(4), ["y0"]),
        (np.arange(8).reshape(4, 2), ["y0", "y1"]),
        (pd.Series([1, 2, 3, 4], name="age"), ["age"]),
        (pd.Series([1, 2, 3, 4]), ["y0"]),
        ([0.5, 1.5, 2.5], ["y0"]),
        (np.array([True, False, True]), ["y0"]),
        (np.array(["a", "b", "b", "a"]), ["y0_b"]),
        (np.array([[1, "a"], [2, "b"], [3, "a"]], dtype=object), ["y0", "y1_b"]),
        (pd.DataFrame({0: [1, 2, 3]}), ["0"]),
    ],
)
def test_names(Y, names):
    assert encode(Y).columns.tolist() == names


def test_levels_that_do_not_occur_are_left_out():
    Y = pd.Series(pd.Categorical(["a", "b", "a", "c"], categories=["a", "b", "c", "unused"]), name="g")
    assert encode(Y).columns.tolist() == ["g_b", "g_c"]
    first = pd.Series(pd.Categorical(["a", "b", "a", "c"], categories=["unused", "a", "b", "c"]), name="g")
    assert encode(first).columns.tolist() == ["g_b", "g_c"]


def test_missing_rows_can_be_dropped():
    Y = pd.DataFrame({"age": [1.0, np.nan, 3, 4], "g": ["a", "b", None, "b"]}, index=list("wxyz"))
    encoded = encode(Y, missing="drop")
    assert encoded.index.tolist() == ["w", "z"]
    assert encoded.to_numpy().tolist() == [[1, 0], [4, 1]]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1.0, np.nan, 2.0], r"1 missing value.*column 'x'.*row '1'.*missing='drop'"),
        ([1.0, np.inf, 2.0], "infinity.*column 'x'"),
        ([5, 5, 5], "constant in column 'x'"),
        (["only", "only", "only"], "constant in column 'x_only'"),
        ([f"free text {i}" for i in range(30)], "30 distinct values in 30 rows in column 'x'"),
        (["1.5", "2.5", "2.5"], "numbers stored as text in column 'x'"),
        (pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]), "datetime64.*column 'x'"),
        ([1 + 2j, 2, 3], "complex128 in column 'x'"),
        ([{"a": 1}, "b", "b"], "mixture of dict, str in column 'x'"),
        (pd.array([1, None, 3], dtype="Int64"), "missing value.*column 'x'"),
    ],
)
def test_errors_name_the_column(column, words):
    with pytest.raises(ValueError, match=words):
        encode(pd.DataFrame({"x": column}))


def test_other_errors():
    with pytest.raises(ValueError, match="'a' more than once"):
        encode(pd.DataFrame(np.arange(6).reshape(3, 2), columns=["a", "a"]))
    with pytest.raises(ValueError, match="'g_b' more than once"):
        encode(pd.DataFrame({"g": ["a", "b", "b"], "g_b": [1, 2, 3]}))
    with pytest.raises(ValueError, match="at least one covariate"):
        encode(pd.DataFrame(index=range(3)))
    with pytest.raises(ValueError, match="missing needs 'pairs', 'raise' or 'drop'"):
        encode([1, 2], missing="ignore")
    with pytest.raises(ValueError, match="Y needs two dimensions"):
        encode(np.ones((2, 2, 2)))


def test_a_learned_coding_applies_to_further_rows():
    first = pd.DataFrame({"g": pd.Categorical(["a", "b"], categories=["a", "b", "c"]), "age": [1, 2]})
    encoding = Encoding.learn(as_frame(first), declared=True)
    later = pd.DataFrame({"age": [3], "g": ["c"]})  # other order, plain text
    assert encoding.apply(later).to_dict("records") == [{"g_b": 0, "g_c": 1, "age": 3}]
    every = Encoding.learn(as_frame(first), drop_first=False, declared=True)
    assert every.apply(later).to_dict("records") == [{"g_a": 0, "g_b": 0, "g_c": 1, "age": 3}]
    with pytest.raises(ValueError, match="column 'g' can only have the levels of the first rows, got 'd'"):
        encoding.apply(pd.DataFrame({"g": ["d"], "age": [3]}))
    with pytest.raises(ValueError, match="need the columns 'age'"):
        encoding.apply(pd.DataFrame({"g": ["a"]}))


def test_rows_are_matched_by_name():
    Z = pd.DataFrame(np.eye(3), index=["a", "b", "c"])
    Y = pd.Series([3, 1, 2], index=["c", "a", "b"])
    assert match_rows(Z, Y).tolist() == [1, 2, 3]
    assert match_rows(Z.to_numpy(), Y) is Y  # only one side has names
    same = pd.Series([1, 2, 3], index=["a", "a", "c"])
    assert match_rows(Z.set_axis(same.index), same) is same  # equal indices match by position, duplicates or not


def test_row_mismatch_shows_the_offenders():
    Z = pd.DataFrame(np.eye(3), index=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"got 1 in Z and not in Y \('c'\); 1 in Y and not in Z \('d'\)"):
        match_rows(Z, pd.Series([1, 2, 3], index=["a", "b", "d"]))
    with pytest.raises(ValueError, match="'a' more than once"):
        match_rows(Z, pd.Series([1, 2, 3], index=["a", "a", "b"]))


def test_no_row_is_joined_to_the_wrong_covariate():
    rng = np.random.default_rng(0)
    names = [f"patient{i}" for i in range(100)]
    Z = pd.DataFrame(rng.standard_normal((100, 4)), index=names)
    Y = (Z[0] * 2 + 1).rename("age").sample(frac=1, random_state=1)
    assert ca.LatentAligner(shrinkage=0).fit(Z, Y).alignment_["age"] == pytest.approx(1)


def test_gaps_stay_where_they_are():
    Y = pd.DataFrame(
        {
            "number": [1, None, 3, 4],
            "text": ["a", "b", None, "b"],
            "flag": [True, None, False, True],
            "stage": pd.Categorical(["x", "y", "z", None]),
            "count": pd.array([1, 2, None, 4], dtype="Int64"),
            "any": pd.Series([pd.NA, 2.5, 1, 0], dtype=object),
        }
    )
    nan = np.nan
    expected = {
        "number": [1, nan, 3, 4],
        "text_b": [0, 1, nan, 1],
        "flag": [1, nan, 0, 1],
        "stage_x": [1, 0, 0, nan],
        "stage_y": [0, 1, 0, nan],
        "stage_z": [0, 0, 1, nan],
        "count": [1, 2, nan, 4],
        "any": [nan, 2.5, 1, 0],
    }
    expected = pd.DataFrame(expected, dtype=float)
    pd.testing.assert_frame_equal(encode(Y, drop_first=False, missing="pairs"), expected)
    pd.testing.assert_frame_equal(encode(Y, missing="pairs"), expected.drop(columns="stage_x"))
