"""Which folder belongs to whom, and that a folder knows it."""

import json
import os
from pathlib import Path

import pytest

from harness.context import RuntimeContext
from harness.errors import ConfigError, InvalidId, SessionDamaged
from harness.filesystem import agent_root, check_tenant_file, disk, tenant_root, user_namespace, write_tenant_file
from harness.filesystem.namespaces import workspace_root


def test_a_user_is_a_tenant_and_nobody_is_one_too() -> None:
    assert user_namespace(RuntimeContext(user_id="alice")) == ("alice",)
    assert user_namespace(RuntimeContext()) == ()


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ((), "_"),
        (("alice",), "alice"),
        (("acme", "alice"), "acme+alice"),
        (("_",), "%5f"),
        (("a+b",), "a%2bb"),
        (("..",), "%2e%2e"),
    ],
)
def test_a_namespace_is_one_folder_below_tenants(namespace: tuple[str, ...], name: str) -> None:
    assert tenant_root(Path("w"), namespace) == Path("w/tenants") / name


def test_a_workspace_has_one_spelling(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    for spelling in ("link", "link/sub/..", "real/sub/../../link"):
        assert workspace_root(f"{tmp_path}/{spelling}") == (tmp_path / "real").resolve()
    assert workspace_root(tmp_path / "link" / "new") == tmp_path.resolve() / "real" / "new"
    with pytest.raises(ConfigError, match="is no path"):
        workspace_root("a\0b")


def test_an_agent_has_a_folder_by_its_id() -> None:
    assert agent_root(Path("w/tenants/alice"), "Miss/Marple") == Path("w/tenants/alice/agents/%4diss%2f%4darple")


def test_a_blank_part_is_refused() -> None:
    with pytest.raises(InvalidId, match="namespace part"):
        tenant_root(Path("w"), ("acme", " "))


def test_the_tenant_file_names_the_whole_namespace(tmp_path: Path) -> None:
    root = tmp_path / "tenants" / "x"
    assert not check_tenant_file(root, ("acme", "alice"))
    write_tenant_file(root, ("acme", "alice"))
    write_tenant_file(root, ("acme", "alice"))

    assert (root / "tenant.json").read_bytes() == b'{"namespace":["acme","alice"]}\n'
    assert check_tenant_file(root, ("acme", "alice"))
    assert os.listdir(root) == ["tenant.json"]


@pytest.mark.parametrize("operation", [check_tenant_file, write_tenant_file])
def test_a_folder_of_another_namespace_is_not_opened(tmp_path: Path, operation) -> None:
    write_tenant_file(tmp_path, ("alice",))

    with pytest.raises(SessionDamaged, match=r"\['alice'\], but \['bob'\]"):
        operation(tmp_path, ("bob",))
    assert json.loads((tmp_path / "tenant.json").read_text()) == {"namespace": ["alice"]}


UNREADABLE = [
    b"",
    b'{"namespace":["ali',
    b"[]",
    b"{}",
    b"\x00\x00",
    b"\xff\xfe",
    b'{"namespace":"alice"}',
    b'{"namespace":[1]}',
]


@pytest.mark.parametrize("content", UNREADABLE)
@pytest.mark.parametrize("user", ["alice", "A" * 400])
def test_an_unreadable_tenant_file_is_kept_aside_and_closes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, user: str
) -> None:
    (tmp_path / "tenant.json").write_bytes(content)

    assert not check_tenant_file(tmp_path, (user,))
    assert (tmp_path / "tenant.json").read_bytes() == content
    write_tenant_file(tmp_path, (user,))
    assert check_tenant_file(tmp_path, (user,))
    [aside] = [path for path in tmp_path.iterdir() if path.name != "tenant.json"]
    assert aside.read_bytes() == content
    assert aside.name in caplog.text
    with pytest.raises(SessionDamaged, match="bob"):
        write_tenant_file(tmp_path, ("bob",))


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("elsewhere")])
def test_what_is_no_file_is_no_tenant_file(tmp_path: Path, make) -> None:
    make(tmp_path / "tenant.json")
    write_tenant_file(tmp_path, ("alice",))
    assert (tmp_path / "tenant.json").read_bytes() == b'{"namespace":["alice"]}\n'


def test_of_two_processes_that_find_it_unreadable_both_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_somebody_else(path: Path) -> Path:
        path.unlink()
        return set_aside(path)

    set_aside = disk.set_aside
    (tmp_path / "tenant.json").write_bytes(b"")
    monkeypatch.setattr(disk, "set_aside", first_somebody_else)
    write_tenant_file(tmp_path, ("alice",))
    assert check_tenant_file(tmp_path, ("alice",))


def test_of_two_processes_that_open_a_new_folder_the_later_checks_the_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_somebody_else(path: Path, data: bytes, *, sync: bool) -> bool:
        path.write_text('{"namespace":["bob"]}')
        return False

    monkeypatch.setattr(disk, "create", first_somebody_else)
    with pytest.raises(SessionDamaged, match="bob"):
        write_tenant_file(tmp_path, ("alice",))
