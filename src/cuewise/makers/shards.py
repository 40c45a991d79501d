"""Tar shards: images wait beside each other until all of a shard are there, then it is packed and appears whole."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterable
from typing import Any

from cuewise.errors import UserError
from cuewise.files import writing
from cuewise.makers.store import Store


class Packer:
    """Packs each shard as soon as its last item is done; the bytes of a tar depend on its images only."""

    def __init__(self, store: Store, items: Iterable[int], broken: set[int]) -> None:
        self.store, self.layout, self.broken = store, store.layout, broken
        size = self.layout.shard_size
        self.left = Counter(i // size for i in items if size)
        for shard in range(self.layout.shards):
            if not self.left[shard] and not store.packed(shard):
                self.pack(shard)

    def done(self, i: int, broken: bool) -> None:
        """One more item is there, or never will be."""
        if not self.layout.shard_size:
            return
        if broken:
            self.broken.add(i)
        shard = i // self.layout.shard_size
        self.left[shard] -= 1
        if not self.left[shard]:
            self.pack(shard)

    def pack(self, shard: int) -> None:
        """Write the tar, in the order of the layout."""
        size = self.layout.shard_size
        target = self.store.folder / self.layout.shard_name(shard)
        with (
            writing(target) as file,
            tarfile.open(
                fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
            ) as tar,
        ):
            for i in range(shard * size, min((shard + 1) * size, len(self.layout))):
                if i not in self.broken:
                    self._add(tar, i)
        shutil.rmtree(self.store.staged / str(shard), ignore_errors=True)

    def _add(self, tar: Any, i: int) -> None:
        for k, name in enumerate(self.layout.files(i)):
            try:
                data = self.store.path(i, k, name).read_bytes()
            except FileNotFoundError:
                raise UserError(
                    f"{name} vanished while its shard was packed; run the same command again"
                ) from None
            member = tarfile.TarInfo(name)  # time 0, no owner: the same bytes in every run
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
