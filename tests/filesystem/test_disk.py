"""The blocking primitives: whole or nothing, private, durable where asked, errors said once."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import appending, disk, lowlevel


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


class Recorder:
    """Stands before `os.fdatasync` and `os.fsync` and notes what they were called for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        for name in ("fdatasync", "fsync"):
            monkeypatch.setattr(os, name, self._noting(getattr(os, name)))

    def _noting(self, real):
        def sync(descriptor: int) -> None:
            self.synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
            real(descriptor)

        return sync


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to name descriptors")
    return Recorder(monkeypatch)


def test_new_folders_and_files_are_private(tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "a" / "b")
    disk.append(tmp_path / "a" / "appended", b"", sync=False, create=True)
    disk.replace(tmp_path / "a" / "replaced", b"", sync=False)
    disk.create(tmp_path / "a" / "created", b"", sync=False)
    disk.write_block(tmp_path / "a" / "block", b"")

    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    assert {mode(tmp_path / "a" / name) for name in ("appended", "replaced", "created", "block")} == {0o600}


def test_a_folder_may_be_there_already_but_not_a_file(tmp_path: Path) -> None:
    disk.make_folder(tmp_path)
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(PersistenceError, match="file away"):
        disk.make_folder(tmp_path / "file")


def test_making_folders_durably_syncs_what_holds_the_new_names(tmp_path: Path, recorder: Recorder) -> None:
    disk.make_folder(tmp_path / "a" / "b", sync=True)

    assert recorder.synced == [tmp_path.name, "a"]


def test_read_takes_a_part(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")

    assert disk.read(tmp_path / "f") == b"0123456789"
    assert disk.read(tmp_path / "f", 7) == b"789"
    assert disk.read(tmp_path / "f", 2, 3) == b"234"
    assert disk.read(tmp_path / "f", 8, 100) == b"89"
    assert disk.read(tmp_path / "f", 50) == b""


def test_a_missing_file_is_missing_by_name(tmp_path: Path) -> None:
    for attempt in (disk.read, disk.set_aside, disk.sync_folder):
        with pytest.raises(FileMissing, match="absent"):
            attempt(tmp_path / "absent")


def test_a_mark_tells_a_changed_file_from_an_unchanged_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    assert disk.mark(path) is None
    path.write_bytes(b"a")
    before = disk.mark(path)

    assert disk.mark(path) == before
    disk.append(path, b"b", sync=False)
    assert disk.mark(path) != before


def test_append_adds_and_tells_the_size(tmp_path: Path) -> None:
    path = tmp_path / "f"

    assert disk.append(path, b"one\n", sync=True, create=True) == 4
    assert disk.append(path, b"two\n", sync=False, expect_size=4) == 8
    assert path.read_bytes() == b"one\ntwo\n"


def test_append_does_not_bring_a_vanished_file_back(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        disk.append(tmp_path / "f", b"late", sync=False)
    assert names(tmp_path) == []


def test_append_to_another_size_than_expected_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")

    with pytest.raises(PersistenceError, match="5 bytes where its writer expected 3"):
        disk.append(tmp_path / "f", b"x", sync=False, expect_size=3)
    assert (tmp_path / "f").read_bytes() == b"12345"


def test_append_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(PersistenceError, match="remove the link"):
        disk.append(tmp_path / "link", b"x", sync=False, create=True)
    assert (tmp_path / "outside").read_bytes() == b""


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    disk.append(tmp_path / "f", b"0123456789", sync=False, create=True)

    assert (tmp_path / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize("failing", ["write", "fdatasync"])
def test_a_failed_append_leaves_no_torn_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    (tmp_path / "f").write_bytes(b"whole\n")
    fill_disk(monkeypatch, failing)

    with pytest.raises(PersistenceError, match="free space on the disk and repeat the call"):
        disk.append(tmp_path / "f", b"half a line\n", sync=True)
    assert (tmp_path / "f").read_bytes() == b"whole\n"


def test_a_tail_that_cannot_be_taken_back_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"")
    fill_disk(monkeypatch, "write")
    fill_disk(monkeypatch, "ftruncate")

    with pytest.raises(PersistenceError, match="could not be taken back"):
        disk.append(tmp_path / "f", b"half a line\n", sync=True)


def fill_disk(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """From now on the call fails; a write lets three bytes through first."""
    real = os.write

    def fail(descriptor: int, data: bytes | int = b"") -> int:
        if call == "write" and os.fstat(descriptor).st_size < 8:
            return real(descriptor, bytes(data)[:3])  # type: ignore[arg-type]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)


def test_a_kept_file_counts_on(tmp_path: Path) -> None:
    file = disk.AppendFile.open(tmp_path / "f")

    assert [file.append(b"ab", sync=False), file.append(b"c", sync=True), file.size] == [2, 3, 3]
    assert file.inode == (tmp_path / "f").stat().st_ino
    file.close()
    file.close()


def test_a_kept_file_is_not_inherited(tmp_path: Path) -> None:
    file = disk.AppendFile.open(tmp_path / "f")

    assert not os.get_inheritable(file._descriptor)
    file.close()


@pytest.mark.parametrize("loss", ["removed", "renamed", "replaced", "folder"])
def test_a_kept_file_notices_that_it_was_taken_away(tmp_path: Path, loss: str) -> None:
    path = tmp_path / "d" / "f"
    disk.make_folder(path.parent)
    file = disk.AppendFile.open(path)
    file.append(b"one", sync=False)
    match loss:
        case "removed":
            path.unlink()
        case "renamed":
            path.rename(tmp_path / "elsewhere")
        case "replaced":
            path.rename(tmp_path / "elsewhere")
            path.mkdir()
        case "folder":
            path.parent.rename(tmp_path / "elsewhere")

    with pytest.raises(FileMissing, match="while it was in use"):
        file.append(b"two", sync=False)
    file.close()


def test_a_kept_file_notices_another_writer(tmp_path: Path) -> None:
    file = disk.AppendFile.open(tmp_path / "f")
    disk.append(tmp_path / "f", b"stranger", sync=False)

    with pytest.raises(PersistenceError, match="8 bytes where its writer expected 0"):
        file.append(b"x", sync=False)
    file.close()


def test_the_folder_of_a_new_file_is_synced_once(tmp_path: Path, recorder: Recorder) -> None:
    file = disk.AppendFile.open(tmp_path / "f")
    file.append(b"a", sync=False)
    file.append(b"b", sync=True)
    file.append(b"c", sync=True)
    file.close()

    assert recorder.synced == ["f", tmp_path.name, "f"]


def test_a_first_append_whose_folder_cannot_be_synced_leaves_nothing(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.AppendFile.open(tmp_path / "f")
    with monkeypatch.context() as refusing:
        refusing.setattr(os, "fsync", _refuse(errno.EIO))
        with pytest.raises(PersistenceError, match="cannot sync the folder"):
            file.append(b"one", sync=True)
    assert (tmp_path / "f").read_bytes() == b""
    file.close()
    recorder.synced.clear()

    assert disk.append(tmp_path / "f", b"one", sync=True) == 3
    assert recorder.synced == ["f", tmp_path.name]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF])
def test_a_file_system_that_syncs_no_folders_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "fsync", _refuse(number))
    disk.append(tmp_path / "a", b"x", sync=True, create=True)
    disk.replace(tmp_path / "b", b"x", sync=True)

    assert names(tmp_path) == ["a", "b"]


def _refuse(number: int):
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("stamp", ["its own", "the one it had"])
def test_a_file_that_was_written_anew_is_another_whatever_its_time_says(tmp_path: Path, stamp: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one")
    before, times = disk.mark(path), path.stat()
    while path.stat().st_ctime_ns == times.st_ctime_ns:  # a clock of the system may tick slowly
        path.write_bytes(b"two")
    if stamp != "its own":
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert disk.mark(path) != before


def test_of_a_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcdefg")

    assert [*disk.read_blocks(tmp_path / "f", 2, length=5)] == [b"ab", b"cd", b"e"]
    assert [*disk.read_blocks(tmp_path / "f", 4)] == [b"abcd", b"efg"]


def test_unsynced_appends_can_be_synced_later(tmp_path: Path, recorder: Recorder) -> None:
    file = disk.AppendFile.open(tmp_path / "f")
    file.append(b"a", sync=False)
    file.sync()
    file.close()

    assert recorder.synced == ["f", tmp_path.name]


def test_replace_syncs_before_the_name_changes(tmp_path: Path, recorder: Recorder) -> None:
    disk.replace(tmp_path / "f", b"x", sync=True)

    assert [name.startswith(".tmp-") for name in recorder.synced] == [True, False]
    assert recorder.synced[1] == tmp_path.name


def test_readers_of_a_replaced_file_see_whole_versions(tmp_path: Path) -> None:
    path = tmp_path / "f"
    disk.replace(path, b"0" * 5000, sync=False)
    stop = threading.Event()

    def write(digit: bytes) -> None:
        while not stop.is_set():
            disk.replace(path, digit * 5000, sync=False)

    writers = [threading.Thread(target=write, args=(digit,)) for digit in (b"1", b"2")]
    for writer in writers:
        writer.start()
    seen = [disk.read(path) for _ in range(300)]
    stop.set()
    for writer in writers:
        writer.join()
    assert [len(version) for version in seen] == [5000] * 300
    assert all(len(set(version)) == 1 for version in seen)
    assert names(tmp_path) == ["f"]


def test_a_failed_replace_keeps_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"old")
    fill_disk(monkeypatch, "write")

    with pytest.raises(PersistenceError):
        disk.replace(tmp_path / "f", b"a new long content", sync=False)
    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_block_is_written_over_in_place(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    disk.write_block(path, b"a" * 512)
    inode = path.stat().st_ino
    disk.write_block(path, b"b" * 512, sync=True)

    assert (path.read_bytes(), path.stat().st_ino) == (b"b" * 512, inode)


def test_a_block_is_overwritten_only_where_one_of_its_size_is(tmp_path: Path) -> None:
    path = tmp_path / "block"
    assert not disk.overwrite(path, b"b" * 512)
    path.write_bytes(b"short")
    assert not disk.overwrite(path, b"b" * 512)
    assert path.read_bytes() == b"short"
    path.write_bytes(b"a" * 512)
    inode = path.stat().st_ino
    assert disk.overwrite(path, b"b" * 512)
    assert (path.read_bytes(), path.stat().st_ino) == (b"b" * 512, inode)


def test_a_link_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"a" * 512)
    (tmp_path / "block").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PersistenceError, match="cannot write"):
        disk.overwrite(tmp_path / "block", b"b" * 512)
    assert (tmp_path / "elsewhere").read_bytes() == b"a" * 512


def test_bytes_are_added_to_the_very_file_that_was_marked(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"one\n")
    known = disk.mark(path)
    assert known is not None
    added = disk.append_to(path, known, b"two\n", sync=False)
    assert (added, path.read_bytes()) == (disk.mark(path), b"one\ntwo\n")


def test_nothing_is_added_to_another_file_than_the_marked_one(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"one\n")
    known = disk.mark(path)
    assert known is not None
    disk.replace(path, b"two\n", sync=False)
    assert disk.append_to(path, known, b"three\n", sync=False) is None
    path.unlink()
    assert disk.append_to(path, known, b"three\n", sync=False) is None
    assert names(tmp_path) == []


def test_create_takes_a_name_once(tmp_path: Path) -> None:
    assert disk.create(tmp_path / "f", b"first", sync=True)
    assert not disk.create(tmp_path / "f", b"second", sync=False)
    assert (tmp_path / "f").read_bytes() == b"first"
    assert names(tmp_path) == ["f"]


def test_create_of_a_file_that_is_there_makes_it_durable(tmp_path: Path, recorder: Recorder) -> None:
    (tmp_path / "f").write_bytes(b"written by one who crashed")

    assert not disk.create(tmp_path / "f", b"", sync=True)
    assert recorder.synced == ["f", tmp_path.name]


def test_create_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)

    assert disk.create(tmp_path / "f", b"first", sync=False)
    assert not disk.create(tmp_path / "f", b"second", sync=False)
    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"first"


def test_of_many_creators_one_succeeds(tmp_path: Path) -> None:
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: made.append(disk.create(tmp_path / "f", b"%d" % n, sync=False)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(made) == [False] * 7 + [True]


def test_a_damaged_file_keeps_its_bytes_under_another_name(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        (tmp_path / "m.json").write_bytes(content)
        kept = disk.set_aside(tmp_path / "m.json")
        assert kept.read_bytes() == content
        assert kept.name.startswith("m.json.damaged-")
        assert disk.is_leftover(kept.name)
    assert len(names(tmp_path)) == 2


def test_removal_takes_the_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "f").write_bytes(b"")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")

    assert [disk.remove_tree(tmp_path / "tree"), disk.remove_tree(tmp_path / "link")] == [True, True]
    assert [disk.remove_tree(tmp_path / "link"), disk.remove(tmp_path / "link")] == [False, False]
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == ["f"]


def test_a_listing_is_sorted_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "c").symlink_to(tmp_path / "b")

    assert [(item.name, item.is_dir) for item in disk.list_folder(tmp_path)] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert disk.list_folder(tmp_path)[0].size == 3
    assert disk.list_folder(tmp_path / "absent") == []


def test_only_old_temporary_files_are_swept(tmp_path: Path) -> None:
    for name in (lowlevel.temporary_name(), "notes.md"):
        (tmp_path / name).write_bytes(b"")

    assert disk.remove_leftovers(tmp_path) == 0
    assert disk.remove_leftovers(tmp_path, min_age=0) == 1
    assert names(tmp_path) == ["notes.md"]


def test_an_error_names_path_cause_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError) as caught:
        disk.read(tmp_path)
    assert str(caught.value) == (
        f"cannot read {tmp_path}: Is a directory; move the folder away that stands where a file belongs"
    )


def test_the_appending_names_are_the_same_from_both_doors() -> None:
    assert (disk.AppendFile, disk.append, disk.mark) == (appending.AppendFile, appending.append, appending.mark)
