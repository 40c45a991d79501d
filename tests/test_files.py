"""Files appear whole or not at all, whatever interrupts their writer."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cuewise import UserError
from cuewise.files import aside, explain_full_disk, hold_file, write_bytes, write_json, write_text, writing


def half_written(file: Path) -> None:
    with writing(file) as handle:
        handle.write(b"half")
        handle.flush()
        raise RuntimeError


def refused(file: Path) -> None:
    """As torch.save reports a full disk."""
    try:
        with aside(file) as part:
            part.write_bytes(b"x")
            raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        raise RuntimeError("unexpected position") from error


def test_a_file_is_replaced_only_when_the_block_ends_well(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old\n")
    with pytest.raises(RuntimeError):
        half_written(file)
    assert file.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["a.txt"]
    write_json(file, {"ä": 1}, indent=None)
    assert file.read_text(encoding="utf-8") == '{"ä": 1}\n'


def test_two_writers_of_a_shared_file_do_not_meet(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with writing(file, shared=True) as one, writing(file, shared=True) as two:
        one.write(b"one")
        two.write(b"two")
    assert file.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_has_one_writer_and_is_not_replaced_by_accident(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.npz"
    with hold_file(file, overwrite=False):
        with (
            pytest.raises(UserError, match=r"a\.npz is being written by another process"),
            hold_file(file, True),
        ):
            pass
        write_bytes(file, b"one")
    assert os.listdir(file.parent) == ["a.npz"]
    with pytest.raises(UserError, match=r"a\.npz exists: use --overwrite"), hold_file(file, False):
        pass
    with pytest.raises(RuntimeError), hold_file(file, True):
        half_written(file)
    assert file.read_bytes() == b"one"
    assert os.listdir(file.parent) == ["a.npz"]


def test_a_flushed_file_is_flushed_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(os.listdir(tmp_path)))
    write_bytes(tmp_path / "a", b"x")
    write_bytes(tmp_path / "b", b"x", sync=False)
    assert seen == [["a.part"], ["a"]]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    line = r"the disk is full .*; free some space and run it again"
    with pytest.raises(UserError, match=line), explain_full_disk(tmp_path, "run it again"):
        refused(tmp_path / "a")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="Permission"), explain_full_disk(tmp_path, "run it again"):
        raise OSError(errno.EACCES, "Permission denied")


def test_a_refusal_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    place = tmp_path / "file" / "a.json"
    with pytest.raises(NotADirectoryError) as found:
        write_text(place, "x")
    assert found.value.filename == str(place)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as found:
        write_text(tmp_path / "folder", "x")
    assert (found.value.filename, found.value.filename2) == (str(tmp_path / "folder"), None)
    with (
        pytest.raises(UserError, match=r"a\.json cannot be written \(.*\); fix that and run"),
        hold_file(place, False),
    ):
        pass
