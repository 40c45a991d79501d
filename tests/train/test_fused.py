"""The fused optimisers compute what torch's plain loops do, whatever the layout, and copy no weight."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cuewise.train.fused import SGD, Adam, AdamW

LAST = torch.channels_last
CASES: dict[str, tuple[type[torch.optim.Optimizer], type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (SGD, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    "sgd without momentum": (SGD, torch.optim.SGD, {"weight_decay": 0.01}),
    "adam": (Adam, torch.optim.Adam, {"weight_decay": 0.01}),
    "adamw": (AdamW, torch.optim.AdamW, {"weight_decay": 0.01}),
}


def weights(seed: int = 0) -> list[Tensor]:
    """Channels last, one whose permuted shape is its own, one by one, contiguous, and vectors."""
    g = torch.Generator().manual_seed(seed)
    shapes = [(16, 8, 3, 3), (8, 3, 3, 3), (8, 16, 1, 1), (4, 6, 3, 3), (5, 7), (9,)]
    found = [torch.randn(s, generator=g) for s in shapes]
    return [t.contiguous(memory_format=LAST) if i < 3 else t for i, t in enumerate(found)]


def trained(kind: type, fused: bool, options: dict[str, Any], odd: bool, stop: int = 4) -> Any:
    parameters = [nn.Parameter(w) for w in weights()]
    optimiser = kind(parameters, lr=0.1, fused=fused, **({} if fused else {"foreach": False}), **options)
    for step in range(stop):
        for i, (p, g) in enumerate(zip(parameters, weights(1 + step))):
            p.grad = g.contiguous() if odd and i == 1 else g
        if step == 2:
            parameters[4].grad = None
        optimiser.step()
    return parameters, optimiser


@pytest.mark.parametrize("odd", [False, True], ids=["same layout", "gradient of another layout"])
@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_plain_optimiser(name: str, odd: bool) -> None:
    ours, torchs, options = CASES[name]
    found, optimiser = trained(ours, True, options, odd)
    wanted, plain = trained(torchs, False, options, odd)
    for a, b in zip(found, wanted):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    if "without" not in name:
        for a, b in zip(found, wanted):
            for key, value in plain.state[b].items():
                torch.testing.assert_close(optimiser.state[a][key], value, rtol=1e-5, atol=1e-6)
    assert {id(p) for p in optimiser.state} <= {id(p) for p in found}, "states of weights, not of views"


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_resumes_to_the_bit(name: str) -> None:
    ours, _, options = CASES[name]
    whole, _ = trained(ours, True, options, False)
    parameters, first = trained(ours, True, options, False, stop=2)
    copies = [nn.Parameter(p.detach().clone()) for p in parameters]
    second = ours(copies, lr=0.1, fused=True, **options)  # type: ignore[call-arg]
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for step in (2, 3):
        for p, g in zip(copies, weights(1 + step)):
            p.grad = g
        if step == 2:
            copies[4].grad = None
        second.step()
    for a, b in zip(copies, whole):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_states_of_another_layout(name: str) -> None:
    """As after a checkpoint of the same network in another layout."""
    ours, _, options = CASES[name]
    whole, _ = trained(ours, True, options, False)
    parameters, optimiser = trained(ours, True, options, False, stop=2)
    for state in optimiser.state.values():
        for key, value in state.items():
            state[key] = value.contiguous()
    for step in (2, 3):
        for p, g in zip(parameters, weights(1 + step)):
            p.grad = g
        if step == 2:
            parameters[4].grad = None
        optimiser.step()
    for a, b in zip(parameters, whole):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_no_weight_is_copied(name: str) -> None:
    ours, torchs, options = CASES[name]
    counts = {}
    for kind in (ours, torchs):
        parameters = [nn.Parameter(w) for w in weights()[:3]]
        optimiser = kind(parameters, lr=0.1, fused=True, **options)  # type: ignore[call-arg]
        for _ in range(2):
            for p, g in zip(parameters, weights(1)):
                p.grad = g
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                optimiser.step()
        counts[kind] = sum(e.count for e in profile.key_averages() if e.key == "aten::clone")
    assert counts[ours] == 0
    if not counts[torchs]:
        pytest.skip("this torch copies none either: cuewise/train/fused.py is not needed any more")
