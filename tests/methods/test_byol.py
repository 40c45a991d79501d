"""BYOL with patch, texture and regular negatives: Eq. 2 re-derived, and a warning where it makes no sense."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cuewise.methods import Negatives
from tests.methods.conftest import small_batch, small_method


def test_patch_and_regular_terms_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """L = ‖p−z‖² − α₁‖p−n‖² − α₂‖p−r‖², each with its own weight; the regular one is another image's target."""
    m: Any = small_method("byol", negatives=Negatives(("patch", "regular"), (0.05, 0.1), 2))
    given = small_batch(m)
    views = given.views
    drawn: list[torch.Tensor] = []
    another = type(m).another
    monkeypatch.setattr(type(m), "another", lambda self, z: drawn.append(another(self, z)) or drawn[-1])
    m.eval()  # the same statistics in every forward
    step = m(given)
    total = 0.0
    with torch.no_grad():
        for role, other, regular in (("first", "second", drawn[0]), ("second", "first", drawn[1])):
            p, z = m.predict(views[role]), m.aim(views[other])
            n = m.aim(views[f"patch:{role}"].flatten(0, 1)).unflatten(0, (8, 2))
            for i in range(8):
                total += float((p[i] - z[i]).square().sum())
                total -= 0.05 * sum(float((p[i] - n[i, j]).square().sum()) for j in range(2))
                total -= 0.1 * float((p[i] - regular[i]).square().sum())
                assert not torch.allclose(regular[i], z[i])  # never its own
        # what the dial of negatives compares: the first view with the patches that were cut from it
        torch.testing.assert_close(step.z, m.aim(views["first"]))
        own = m.aim(views["patch:first"].flatten(0, 1)).unflatten(0, (8, 2))
        torch.testing.assert_close(step.negatives, own)
    assert float(step.loss.detach()) == pytest.approx(total / 16, rel=1e-5)


def test_too_strong_a_repulsion_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    small_method("byol", negatives=Negatives(("patch", "regular"), (0.05, 0.05)))
    assert capsys.readouterr().err == ""
    small_method("byol", negatives=Negatives(("patch",), (0.5,), 2))
    assert "outweighs" in capsys.readouterr().err


def test_shared_statistics_put_a_view_and_its_negatives_in_one_batch() -> None:
    """The target's embedding of both is that of the joined batch; apart, the view's does not know of the negatives."""
    dial = Negatives(("patch", "regular"), (0.05, 0.1), 2)
    shared: Any = small_method("byol", negatives=dial, statistics="shared").train()
    apart: Any = small_method("byol", negatives=dial).train()
    plain: Any = small_method("byol").train()
    given = small_batch(shared)
    views = given.views
    both = torch.cat([views["first"], views["patch:first"].flatten(0, 1)])
    expected = small_method("byol").train().aim(both)  # type: ignore[operator]
    step = shared(given)
    torch.testing.assert_close(step.z, expected[:8])
    torch.testing.assert_close(apart(given).z, plain(given).z)
    assert not torch.allclose(step.z, plain(given).z, atol=1e-4)
    assert step.negatives.shape == (8, 2, 16)
