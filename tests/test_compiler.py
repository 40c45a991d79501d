"""torch's compiler stays out of commands that compile nothing, and answers as ever once it is there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CODE = """
    import sys
    import cuewise.audits.run, cuewise.probes, cuewise.train.pretrain
    from cuewise import compiler, embed, pretrain

    def loaded():
        return compiler.COMPILER in sys.modules

    assert not loaded()
    import numpy as np
    from cuewise.probes import LinearProbe
    LinearProbe().fit(np.eye(20, 4, dtype=np.float32), np.arange(20) % 2)
    embed("cuewise/resnet-tiny?width=8", "shapes:aligned?n=4&size=16", out="e.npz", size=16)
    for name in ("sgd", "adam", "adamw", "lars"):
        pretrain("shapes?n=32&size=16", out=name, model="cuewise/resnet-tiny?width=8", size=16, batch_size=16, steps=2,
                 workers="0", set=["moco.queue=32", f"optim.name={name}"])
    assert not loaded()  # nor by the work itself

    import torch, timm, torchvision
    from lightning_fabric.wrappers import OptimizedModule, _unwrap_compiled
    from torch import nn
    plain = nn.Linear(2, 2)
    assert not isinstance(plain, OptimizedModule) and not loaded()
    compiled = torch.compile(plain, backend="eager")
    assert loaded() and isinstance(compiled, torch._dynamo.OptimizedModule)
    assert isinstance(compiled, OptimizedModule) and not isinstance(plain, OptimizedModule)
    assert _unwrap_compiled(compiled)[0] is plain and _unwrap_compiled(plain)[0] is plain

    from torch._dynamo.utils import is_compile_supported
    from torchvision.ops import roi_align
    theirs = sys.modules["torchvision.ops.roi_align"].is_compile_supported
    assert [theirs(d) for d in ("cpu", "cuda", "mps")] == [is_compile_supported(d) for d in ("cpu", "cuda", "mps")]
    assert roi_align(torch.ones(1, 1, 4, 4), [torch.tensor([[0.0, 0, 2, 2]])], 2).shape == (1, 1, 2, 2)
    model = timm.create_model("naflexvit_base_patch16_gap", depth=1, embed_dim=24, num_heads=2, num_classes=3).eval()
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 3)
    assert torch.compiler.disable.__module__ == "torch.compiler"  # theirs again
"""


@pytest.mark.shell
def test_the_compiler_comes_when_something_is_compiled(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


MORE = """
    import sys
    from cuewise import compiler
    compiler.ASKING = (*compiler.ASKING, "wants_more", "wants_a_name")
    import wants_more, wants_a_name
    import torch._dynamo.config
    assert wants_more.config is torch._dynamo.config and wants_a_name.disable is torch._dynamo.disable
    assert wants_more.times == [1, 1]
"""


@pytest.mark.shell
def test_a_release_that_wants_more_of_the_compiler_gets_it(tmp_path: Path) -> None:
    """The file is run again with the compiler itself: by a submodule that is not there, by a name that is not there."""
    (tmp_path / "wants_more.py").write_text(
        "import builtins\n"
        "times = builtins.__dict__.setdefault('_times', [])\n"
        "times.append(1)\n"
        "from torch._dynamo import config\n"
    )
    (tmp_path / "wants_a_name.py").write_text("from torch._dynamo import disable\n")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MORE)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
