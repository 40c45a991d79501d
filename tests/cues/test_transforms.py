"""cuewise.transforms: every cue operator inside torchvision.transforms.v2."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from torchvision import tv_tensors
from torchvision.transforms import v2

import cuewise
from cuewise import transforms
from cuewise.cues.contract import photo
from cuewise.cues.registry import CUES, cues
from cuewise.errors import UserError
from cuewise.transforms.transform import class_name

MOVING = {"patch", "quilting", "texture", "tiles", "rotation"}


def seeded() -> np.random.Generator:
    """The generator that a transform makes after torch.manual_seed(3)."""
    torch.manual_seed(3)
    return np.random.default_rng(int(torch.randint(0, 2**63 - 1, ())))


def after_seed(transform: Any, *inputs: Any) -> Any:
    torch.manual_seed(3)
    return transform(*inputs)


@pytest.mark.parametrize("name", cues())
def test_every_operator_gives_its_own_pixels(name: str) -> None:
    """The same pixels as the operator, in every form, with boxes and masks as they were or refused."""
    transform = getattr(cuewise.transforms, class_name(name))()
    image = photo(32, 32)
    want = cues()[name](image, seeded())
    planes = torch.from_numpy(image).permute(2, 0, 1)
    for form, pixels in (
        (planes, lambda out: out.permute(1, 2, 0).numpy()),
        (tv_tensors.Image(planes), lambda out: out.permute(1, 2, 0).numpy()),
        (planes / 255, lambda out: np.rint(out.permute(1, 2, 0).numpy() * 255)),
        (Pillow.fromarray(image), np.asarray),
    ):
        out = after_seed(transform, form)
        assert type(out) is type(form)
        np.testing.assert_array_equal(pixels(out), want)
    boxes = tv_tensors.BoundingBoxes([[1, 2, 9, 9]], format="XYXY", canvas_size=(32, 32))
    known = {
        "image": tv_tensors.Image(planes),
        "boxes": boxes,
        "mask": tv_tensors.Mask(planes[0]),
        "label": 3,
    }
    if name in MOVING:
        with pytest.raises(UserError, match=f"{name} moves .* BoundingBoxes would no longer fit"):
            transform(known)
        return
    out = after_seed(transform, known)
    np.testing.assert_array_equal(out["image"].permute(1, 2, 0).numpy(), want)
    assert type(out["image"]) is tv_tensors.Image
    assert torch.equal(out["boxes"], boxes)
    assert type(out["boxes"]) is tv_tensors.BoundingBoxes
    assert torch.equal(out["mask"], known["mask"])
    assert out["label"] == 3


def test_what_moves_content_is_declared() -> None:
    """An operator that is not said to move content keeps a large disc where it is."""
    assert {name for name, cue in cues().items() if cue.moves} == MOVING


def test_inside_compose_options_and_names() -> None:
    compose = v2.Compose(
        [v2.CenterCrop(24), transforms.Gaussian(sigma=1.5), v2.ToDtype(torch.float32, scale=True)]
    )
    image, label = compose(
        tv_tensors.Image(torch.from_numpy(photo(32, 40)).permute(2, 0, 1)), torch.tensor(7)
    )
    assert image.shape == (3, 24, 24)
    assert image.dtype == torch.float32
    assert label == 7
    assert repr(transforms.Gaussian(sigma=1.5)) == "Gaussian(sigma=1.5)"
    assert list(inspect.signature(transforms.Gaussian).parameters) == ["sigma", "form"]
    with pytest.raises(UserError, match="did you mean sigma"):
        transforms.Gaussian(sigmma=2)
    with pytest.raises(AttributeError, match="no attribute 'Gauss'; it has: Anisotropic"):
        transforms.Gauss  # type: ignore[attr-defined]  # noqa: B018
    assert {class_name(n) for n in CUES.all()} <= set(transforms.__all__)
    assert transforms.transform_of("cuewise.cues.blur:Gaussian").cue == cues()["gaussian"]


def test_randomness_is_torch_s() -> None:
    """One seed repeats a transform; images of one call share what is drawn; the next call draws anew."""
    transform, image = transforms.Cast(), torch.from_numpy(photo(24, 24)).permute(2, 0, 1)
    one, again = after_seed(transform, image), after_seed(transform, image)
    assert torch.equal(one, again)
    first, second = transform(tv_tensors.Image(image), tv_tensors.Image(image))
    assert torch.equal(first, second)
    assert len({transform(image).numpy().tobytes() for _ in range(8)}) > 1


def test_workers_can_be_given_one() -> None:
    found = pickle.loads(pickle.dumps(transforms.Anisotropic(steps=3)))
    assert type(found) is transforms.Anisotropic
    assert found.cue.steps == 3


def test_normalised_images_are_refused() -> None:
    with pytest.raises(UserError, match="0, 1"):
        transforms.Grey()(torch.full((3, 16, 16), -2.0))
