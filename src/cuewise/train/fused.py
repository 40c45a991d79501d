"""torch's fused optimisers on a CPU, without a copy of every channels-last weight in every step.

torch's kernels first copy what is not contiguous. And they walk through the memory of a
weight, its gradient and its states side by side, so that one of another layout is silently applied to the wrong weights.
All they compute is elementwise: here they are given tensors of one layout, with their axes in the order of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


def laid_out_as(p: Tensor, t: Tensor) -> Tensor:
    """t, copied where its layout is not that of p."""
    return t if t.stride() == p.stride() else torch.empty_like(p).copy_(t)


def in_memory_order(t: Tensor) -> Tensor:
    """A view of the same memory, contiguous where t is channels last."""
    last = t.ndim == 4 and t.is_contiguous(memory_format=torch.channels_last)
    return t.permute(0, 2, 3, 1) if last and not t.is_contiguous() else t


def on_cpu(group: dict[str, Any]) -> bool:
    return bool(group["fused"]) and all(p.device.type == "cpu" for p in group["params"])


class Uncompiled:
    """An optimiser that is called, never compiled. torch wraps these methods to hide them from its compiler, and imports the
    compiler to do so: seconds before the first step."""

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)


class SGD(Uncompiled, torch.optim.SGD):
    """v ← μ v + g + wd·p;  p ← p − lr·v."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        if not all(map(on_cpu, self.param_groups)):
            return super().step(closure)
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            params, grads, buffers = [], [], []
            for p in group["params"]:
                if p.grad is None:
                    continue
                params.append(in_memory_order(p))
                grads.append(in_memory_order(laid_out_as(p, p.grad)))
                if group["momentum"]:
                    v = self.state[p].get("momentum_buffer")
                    v = self.state[p]["momentum_buffer"] = (
                        torch.zeros_like(p) if v is None else laid_out_as(p, v)
                    )
                    buffers.append(in_memory_order(v))
            names = ("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize")
            if params:
                torch._fused_sgd_(params, grads, buffers, **{k: group[k] for k in names}, is_first_step=False)
        return loss


class _Ordered:
    def _init_group(self, group: dict[str, Any], *given: Any) -> Any:
        found = super()._init_group(group, *given)  # type: ignore[misc]
        if on_cpu(group):
            lists = [
                part for part in given if isinstance(part, list)
            ]  # AdamW of torch 2.6 has a flag among them
            for i, p in enumerate(tuple(lists[0])):
                state = self.state[p]  # type: ignore[attr-defined]
                for name in ("exp_avg", "exp_avg_sq"):
                    state[name] = laid_out_as(p, state[name])
                tensors = (p, laid_out_as(p, p.grad), state["exp_avg"], state["exp_avg_sq"])  # type: ignore[arg-type]
                for place, t in zip(lists, tensors):
                    place[i] = in_memory_order(t)
        return found


class Adam(_Ordered, Uncompiled, torch.optim.Adam):
    """torch's Adam."""

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class AdamW(_Ordered, Uncompiled, torch.optim.AdamW):
    """torch's AdamW."""

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
