"""A lock behind a barrier: not had while somebody is at work there, and never one that was moved away."""

import asyncio
import fcntl
import gc
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FileMissing, FilesystemError, PersistenceError, RemovalUnfinished, SessionBusy
from harness.filesystem import LocalFilesystem, disk, local_tree, removal
from harness.filesystem.locks import FileLock
from harness.filesystem.removal import Barrier, Kept, TenantFolder


@pytest.fixture
def tenant(tmp_path: Path) -> Path:
    (tmp_path / "tenants/alice/agents/notes/sessions").mkdir(parents=True)
    return tmp_path / "tenants/alice"


def lock_of(tenant: Path) -> FileLock:
    return FileLock(tenant / "agents/notes/sessions/s.lock", in_folder=True, barrier=tenant / "agents/removal.lock")


async def test_a_lock_is_had_only_while_its_barrier_is_down(tenant: Path) -> None:
    lock, barrier = lock_of(tenant), Barrier(tenant)
    await barrier.put_up(1)
    assert not lock.take()
    barrier.take_down()
    assert lock.take()
    lock.release()
    assert not (tenant / "agents/removal.lock").exists()


async def test_a_barrier_that_nobody_holds_counts_only_if_its_work_was_begun(tenant: Path) -> None:
    file, lock = tenant / "agents/removal.lock", lock_of(tenant)
    file.write_bytes(b"")
    assert lock.take()
    lock.release()
    file.write_bytes(b"1")
    with pytest.raises(RemovalUnfinished, match="delete the user once more"):
        lock.take()
    assert not lock.held


async def test_a_barrier_whose_work_was_begun_stays_when_it_is_left(tenant: Path) -> None:
    barrier = Barrier(tenant)
    await barrier.put_up(1)
    await barrier.begin()
    barrier.take_down()
    with pytest.raises(RemovalUnfinished):
        lock_of(tenant).take()
    again = Barrier(tenant)
    await again.put_up(1)
    assert again.is_begun
    again.take_down()


async def test_a_barrier_is_not_up_while_a_lock_behind_it_is_held(tenant: Path) -> None:
    lock = lock_of(tenant)
    await lock.acquire(1)
    with pytest.raises(SessionBusy, match=r"s\.lock; nothing of this user was removed"):
        async with TenantFolder(tenant).barred(1):
            raise AssertionError("somebody is inside")
    lock.release()
    async with TenantFolder(tenant).barred(1):
        assert not lock.take()


@pytest.mark.parametrize("moment", ["s.lock", "removal.lock"])
async def test_whoever_takes_a_lock_while_its_folder_is_moved_away_does_not_have_it(
    tenant: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real, lock = os.open, lock_of(tenant)
    moved: list[Path] = []

    def slow(path: object, *arguments: int, **options: int) -> int:
        if str(path).endswith("removal.lock") and moment == "removal.lock" and not moved:
            moved.append(tenant.rename(tenant.parent / "moved"))
        descriptor = real(path, *arguments, **options)  # type: ignore[arg-type]  # whatever was given
        if str(path).endswith("s.lock") and moment == "s.lock" and not moved:
            moved.append(tenant.rename(tenant.parent / "moved"))
        return descriptor

    monkeypatch.setattr(os, "open", slow)
    assert not lock.take()
    assert moved
    with pytest.raises(FileMissing):
        lock.take()


async def test_many_who_wait_behind_a_barrier_do_not_keep_it_from_being_put_up_again(tenant: Path) -> None:
    waiting = [lock_of(tenant) for _ in range(5)]
    for lock in waiting:
        lock.path = tenant / f"agents/notes/sessions/{id(lock)}.lock"
    first = Barrier(tenant)
    await first.put_up(1)
    tasks = [asyncio.create_task(lock.acquire(5)) for lock in waiting]
    await asyncio.sleep(0)
    first.take_down()
    second = Barrier(tenant)
    await second.put_up(5)
    second.take_down()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for lock in waiting:
        lock.release()


async def test_whoever_waits_behind_a_barrier_is_told_so(tenant: Path) -> None:
    barrier = Barrier(tenant)
    await barrier.put_up(1)
    with pytest.raises(SessionBusy, match=r"agents/removal\.lock \(the user is being removed\)"):
        await lock_of(tenant).acquire(0.01)
    barrier.take_down()


async def test_a_removal_that_ended_while_somebody_opened_its_barrier_is_not_called_unfinished(
    tenant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lock = os.open, lock_of(tenant)
    (tenant / "agents/removal.lock").write_bytes(b"1")

    def slow(path: object, *arguments: int, **options: int) -> int:
        descriptor = real(path, *arguments, **options)  # type: ignore[arg-type]  # whatever was given
        if str(path).endswith("removal.lock"):
            tenant.rename(tenant.parent / "moved")
        return descriptor

    monkeypatch.setattr(os, "open", slow)
    assert not lock.take()
    with pytest.raises(FileMissing):
        lock.take()


async def test_somebody_who_only_looks_at_a_barrier_does_not_pass_for_a_removal(
    tenant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tenant / "agents/removal.lock").write_bytes(b"1")
    cut_off, real = TenantFolder(tenant), removal._empty_if_left
    cut_off.make_room()
    cut_off.put_away()
    [file] = tenant.parent.rglob("removal.lock")
    looking = os.open(file, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)

    def until_it_has_looked(room: Path) -> list[Kept] | None:
        kept = real(room)
        fcntl.flock(looking, fcntl.LOCK_UN)
        return kept

    monkeypatch.setattr(removal, "_empty_if_left", until_it_has_looked)
    assert [kept.parts for kept in await TenantFolder(tenant).finish()] == [("agents", "removal.lock")]
    os.close(looking)


async def test_a_removal_that_is_cancelled_while_its_barrier_goes_up_leaves_none(
    tenant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, reached, go_on = Barrier(tenant), asyncio.Event(), threading.Event()
    loop, real = asyncio.get_running_loop(), disk.mark

    def slow(path: Path) -> Any:
        loop.call_soon_threadsafe(reached.set)
        go_on.wait(10)
        return real(path)

    monkeypatch.setattr(disk, "mark", slow)
    task = asyncio.create_task(barrier.put_up(1))
    await reached.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not barrier.lock.held
    lock = lock_of(tenant)
    assert lock.take()
    lock.release()


def test_a_forgotten_lock_is_released_although_its_warning_is_an_error(
    tenant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    lock, again = lock_of(tenant), lock_of(tenant)
    assert lock.take()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del lock
        gc.collect()
    assert told == [ResourceWarning]
    assert again.take()
    again.release()


def fill(tenant: Path) -> None:
    (tenant / "agents").mkdir(parents=True, exist_ok=True)
    (tenant / "MEMORY.md").write_text("x")


async def test_removals_that_overlap_do_not_take_each_others_place_away(tenant: Path) -> None:
    fill(tenant)
    first, second = TenantFolder(tenant), TenantFolder(tenant)
    first.make_room()
    first.put_away()
    fill(tenant)
    second.make_room()
    assert len(first.empty()) == 1
    second.put_away()
    assert len(second.empty()) == 1
    assert [*tenant.parent.iterdir()] == []


async def test_a_place_that_was_cleared_away_while_it_was_empty_is_made_again(tenant: Path) -> None:
    fill(tenant)
    folder = TenantFolder(tenant)
    folder.make_room()
    await TenantFolder(tenant).finish()
    folder.put_away()
    assert len(folder.empty()) == 1


def test_a_tenant_that_did_not_go_away_is_not_called_gone(tenant: Path) -> None:
    folder = TenantFolder(tenant)
    tenant.rename(tenant.parent / "elsewhere")
    with pytest.raises(PersistenceError, match="is gone; look who else"):
        folder.put_away()


async def test_what_several_removals_left_is_finished_by_one(tenant: Path) -> None:
    for _ in range(2):
        fill(tenant)
        TenantFolder(tenant).put_away()
    [one, _] = tenant.parent.iterdir()
    one.rename(one.with_name(one.name[: len(".removed-") + 32]))  # as a room was named when a tenant had but one
    found = await TenantFolder(tenant).finish()
    assert [kept.parts for kept in found if kept.size] == [("MEMORY.md",)] * 2
    assert [*tenant.parent.iterdir()] == []


async def test_files_of_a_tenant_are_not_changed_while_it_is_removed(
    tenant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_tree, "_TURN_TIMEOUT", 0.01)
    files, barrier = LocalFilesystem(tenant.parent.parent).for_namespace(("alice",)), Barrier(tenant)
    await barrier.put_up(1)
    with pytest.raises(FilesystemError, match="are being changed elsewhere"):
        await files.append("MEMORY.md", "x")
    await barrier.begin()
    barrier.take_down()
    with pytest.raises(FilesystemError, match="an administrator has to finish it"):
        await files.append("MEMORY.md", "x")
    assert not (tenant / "MEMORY.md").exists()
