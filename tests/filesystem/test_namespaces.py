"""Which folder belongs to whom, and that a folder knows it."""

import json
import os
from pathlib import Path

import pytest

from harness.context import RuntimeContext
from harness.errors import InvalidId, SessionDamaged
from harness.filesystem import agent_root, check_tenant_file, disk, tenant_root, user_namespace, write_tenant_file


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


@pytest.mark.parametrize("content", [b"", b'{"namespace":["ali', b"[]", b"{}", b"\x00\x00"])
def test_an_unreadable_tenant_file_is_reported_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tenant.json").write_bytes(content)

    with pytest.raises(SessionDamaged, match=r"tenant\.json"):
        write_tenant_file(tmp_path, ("alice",))
    assert (tmp_path / "tenant.json").read_bytes() == content


def test_of_two_processes_that_open_a_new_folder_the_later_checks_the_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_somebody_else(path: Path, data: bytes, *, sync: bool) -> bool:
        path.write_text('{"namespace":["bob"]}')
        return False

    monkeypatch.setattr(disk, "create", first_somebody_else)
    with pytest.raises(SessionDamaged, match="bob"):
        write_tenant_file(tmp_path, ("alice",))
