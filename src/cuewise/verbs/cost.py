"""`cuewise cost`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import MACHINE, Device, Model, Result, Size, specified

TOPIC = "measure"


def cost(
    model: Model,
    *,
    size: Size = None,
    batch_size: Annotated[int, "images per forward pass and per training step", MACHINE] = 32,
    device: Device = "auto",
) -> Result:
    """Count parameters and FLOPs per image, and measure speed and memory, of a forward pass and of a training step.

    cuewise cost torchvision/resnet18 --size 64
    cuewise cost runs/plain --batch-size 16
    """
    from cuewise.train.cost import cost_of

    return Result(cost_of(specified(model, None, False), size=size, batch_size=batch_size, device=device))
