"""Strengths compared with scipy and closed forms; agreement compared with Krippendorff's own example."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kotha.errors import DataError
from kotha.evaluation.judge.results import agreement, fit_strengths

WINS = np.array([[0, 12.5, 9, 4], [7.5, 0, 8, 3], [5, 6, 0, 0], [6, 1, 0, 0]], dtype=float)


def lost(values: np.ndarray, wins: np.ndarray) -> float:
    """The negative log-likelihood of the Bradley–Terry model."""
    total = 0.0
    for one in range(len(wins)):
        for other in range(len(wins)):
            total -= wins[one, other] * (values[one] - np.logaddexp(values[one], values[other]))
    return total


def test_strengths_maximize_the_likelihood_as_found_by_scipy() -> None:
    for prior in (0.0, 1.0):
        found = fit_strengths(WINS, prior)
        counted = WINS + prior / 2 * (WINS + WINS.T > 0)
        theirs = minimize(lost, np.zeros(4), args=(counted,), tol=1e-12).x
        np.testing.assert_allclose(found.values, theirs - theirs.mean(), atol=1e-5)
        assert found.values.sum() == pytest.approx(0, abs=1e-9)


def test_two_models_have_a_closed_form() -> None:
    found = fit_strengths(np.array([[0.0, 30.0], [10.0, 0.0]]), prior=0.0)
    assert found.values[0] - found.values[1] == pytest.approx(np.log(3))
    half = 1.96 * np.sqrt(1 / 30 + 1 / 10)  # on the log-odds scale
    odds = np.log(3)
    assert found.interval(np.array([1.0, -1.0])) == pytest.approx((odds - half, odds, odds + half))
    assert found.interval(np.array([1.0, 0.0])) == pytest.approx(((odds - half) / 2, odds / 2, (odds + half) / 2))


def test_the_covariance_is_the_inverse_of_the_numerical_curvature() -> None:
    found, step = fit_strengths(WINS, 0.0), 1e-4
    curvature = np.zeros((4, 4))
    for one in range(4):
        for other in range(4):
            corners = [
                sign_a
                * sign_b
                * lost(found.values + step * (sign_a * np.eye(4)[one] + sign_b * np.eye(4)[other]), WINS)
                for sign_a in (1, -1)
                for sign_b in (1, -1)
            ]
            curvature[one, other] = sum(corners) / (4 * step**2)
    np.testing.assert_allclose(found.covariance, np.linalg.pinv(curvature, rcond=1e-4), atol=1e-4)


def test_a_model_that_won_everything_has_a_finite_strength() -> None:
    found = fit_strengths(np.array([[0.0, 9.0], [0.0, 0.0]]))
    assert found.values[0] - found.values[1] == pytest.approx(np.log(9.5 / 0.5))
    with pytest.raises(DataError, match="cannot be ranked"):
        fit_strengths(np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float))


def test_alpha_is_that_of_krippendorffs_own_example() -> None:
    rows = ["12332141 2***", "12332241 25*3", "*3332342 251*", "12332441 251*"]
    judges = [row.replace(" ", "") for row in rows]
    found = agreement([[said for said in thing if said != "*"] for thing in zip(*judges, strict=True)])
    assert found.things == 11 and found.alpha == pytest.approx(0.743, abs=5e-4)


def test_agreement_is_one_if_all_agree_and_unknown_without_shared_pairs() -> None:
    assert agreement([["left", "left"], ["right", "right"]]).alpha == 1
    assert agreement([["left", "left"], ["left", "left"]]).alpha is None, "one answer ever: chance would agree too"
    alone = agreement([["left"], ["right"]])
    assert (alone.things, alone.share, alone.alpha) == (0, None, None)
    opposed = agreement([["left", "right"], ["right", "left"]])
    assert opposed.share == 0 and opposed.alpha is not None and opposed.alpha < 0
