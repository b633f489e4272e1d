from __future__ import annotations

import asyncio

import pytest

from harness.context import CallScope
from harness.errors import ConfigError, ToolError
from harness.state import StateModule
from harness.tools import FILE_TOOLS, ActiveToolGroups, Tool, ToolCall, Toolkit, as_tool, tool


@tool
def alpha(x: int = 0) -> str:
    """First."""
    return f"alpha {x}"


@tool(group="web")
def beta() -> str:
    """Second."""
    return "beta"


@tool(group="admin")
def gamma() -> str:
    """Third."""
    return "gamma"


class Base:
    @tool
    def zeta(self) -> str:
        return "zeta"


class Desk(Base):
    def helper(self) -> str:
        return "no tool"

    @property
    def trap(self) -> str:
        raise AssertionError("properties are not asked")

    @tool(name="eta")
    async def named_otherwise(self) -> str:
        return "eta"


def names(toolkit: Toolkit, *active: str) -> list[str]:
    return [spec.name for spec in toolkit.specs(active)]


async def text_of(toolkit: Toolkit, scope: CallScope, name: str, **given: object) -> str:
    return (await toolkit.run(ToolCall("c", name, given), scope)).text


def test_functions_tools_objects_lists_and_toolkits_can_be_added():
    toolkit = Toolkit(alpha, as_tool(beta), Desk(), FILE_TOOLS[:1], Toolkit(gamma))

    assert [tool.name for tool in toolkit] == ["alpha", "beta", "zeta", "eta", "read_file", "gamma"]
    assert len(toolkit) == 6


def test_a_function_without_the_decorator_is_a_tool_too():
    def plain(a: int) -> int:
        return a

    assert names(Toolkit(plain)) == ["plain"]


def test_the_order_of_specs_is_the_order_of_adding():
    toolkit = Toolkit(gamma, alpha).add(beta)

    assert names(toolkit, "web", "admin") == ["gamma", "alpha", "beta"]
    assert names(toolkit, "admin", "web") == ["gamma", "alpha", "beta"]


def test_two_tools_of_one_name_are_refused_naming_both():
    def other() -> None: ...

    other.__name__ = "alpha"
    with pytest.raises(ConfigError, match=r"two tools are called 'alpha': .*\.alpha and .*other"):
        Toolkit(alpha, other)


def test_the_same_tool_twice_is_one():
    made = as_tool(alpha)

    assert len(Toolkit(made, Toolkit(made))) == 1


@pytest.mark.parametrize("source", [Desk, object(), 3, "alpha"])
def test_what_has_no_tools_is_refused(source):
    with pytest.raises(ConfigError, match="has no tools"):
        Toolkit(source)


def test_a_copy_goes_its_own_way():
    first = Toolkit(alpha).group("web", active=False)
    second = first.copy().add(beta).group("web", active=True)

    assert [tool.name for tool in first] == ["alpha"]
    assert names(second, "web") == ["alpha", "beta"]
    assert names(first) == ["alpha", "set_tool_groups"]


def test_get_finds_a_tool_whatever_is_switched_on():
    toolkit = Toolkit(alpha, beta).group("web", active=False)

    assert isinstance(toolkit.get("beta"), Tool)
    assert toolkit.get("set_tool_groups").name == "set_tool_groups"
    assert toolkit.get("nobody") is None
    assert Toolkit(alpha).get("set_tool_groups") is None


def test_groups_decide_which_tools_are_shown():
    toolkit = Toolkit(alpha, beta, gamma).group("admin", active=False)

    assert [spec.name for spec in toolkit.specs()] == ["alpha", "beta", "set_tool_groups"]
    assert names(toolkit) == ["alpha", "set_tool_groups"]
    assert names(toolkit, "admin") == ["alpha", "gamma", "set_tool_groups"]


def test_the_switch_is_there_only_if_a_group_starts_switched_off():
    assert names(Toolkit(alpha, beta).group("web")) == ["alpha"]


def test_the_switch_tells_the_model_which_groups_there_are():
    toolkit = Toolkit(beta, gamma).group("web", description="look things up").group("admin", active=False)

    assert toolkit.get("set_tool_groups").spec.description == (
        "Switch groups of tools on or off for this conversation.\nGroups:\n- web: look things up\n- admin"
    )


async def test_a_tool_that_is_not_there_gives_a_result_that_names_the_others(scope):
    result = await Toolkit(alpha).run(ToolCall("c", "delta", {}), scope)

    assert (result.id, result.name, result.is_error) == ("c", "delta", True)
    assert result.text == "Error: delta is not available: there is no tool of that name; available: alpha"


async def test_a_tool_of_a_group_that_is_off_does_not_run(make_scope):
    toolkit = Toolkit(alpha, gamma).group("admin", active=False)
    scope = make_scope("alice", toolkit.active_groups())

    assert await text_of(toolkit, scope, "gamma") == (
        "Error: gamma is not available: its group admin is switched off; available: alpha, set_tool_groups"
    )


async def test_the_model_switches_groups_for_its_own_call_only(make_scope):
    toolkit = Toolkit(alpha, gamma).group("admin", active=False)
    alice = make_scope("alice", toolkit.active_groups())
    bob = make_scope("bob", toolkit.active_groups())

    assert await text_of(toolkit, alice, "set_tool_groups", activate=["admin"]) == "Active tool groups: admin"
    assert await text_of(toolkit, alice, "gamma") == "gamma"
    assert "switched off" in await text_of(toolkit, bob, "gamma")
    assert await text_of(toolkit, alice, "set_tool_groups", deactivate=["admin"]) == "Active tool groups: none"


async def test_an_unknown_group_is_an_error_result_and_changes_nothing(make_scope):
    toolkit = Toolkit(gamma).group("admin", active=False)
    groups = toolkit.active_groups()

    text = await text_of(toolkit, make_scope("alice", groups), "set_tool_groups", activate=["admin", "root"])

    assert text == "Error: no tool group root; there are: admin"
    assert groups.active == frozenset()


def test_active_groups_are_a_state_module_that_stores_differences():
    toolkit = Toolkit(beta, gamma).group("admin", active=False)
    groups = toolkit.active_groups()

    assert isinstance(groups, StateModule)
    assert (groups.name, groups.save()) == ("active_tool_groups", None)
    groups.set(["admin"], active=True)
    groups.set(["web"], active=False)
    assert groups.save() == {"on": ["admin"], "off": ["web"]}


def test_active_groups_survive_a_round_trip_and_a_change_of_the_agent():
    later = Toolkit(beta, gamma).group("admin", active=False).group("new").active_groups()

    later.load({"on": ["admin", "gone"], "off": ["web"]})

    assert later.active == {"admin", "new"}
    assert later.save() == {"on": ["admin", "gone"], "off": ["web"]}


@pytest.mark.parametrize("damaged", [{}, {"on": "admin"}, {"on": [1, None]}, {"on": None, "off": {}}])
def test_a_damaged_state_of_groups_is_the_start(damaged):
    groups = Toolkit(beta, gamma).group("admin", active=False).active_groups()

    groups.load(damaged)

    assert groups.active == {"web"}


def test_switching_a_group_that_does_not_exist_is_an_error():
    with pytest.raises(ToolError, match="no tool group web; there are: none"):
        ActiveToolGroups().set(["web"], active=True)


async def test_many_calls_share_one_toolkit(make_scope):
    toolkit = Toolkit(alpha)

    texts = await asyncio.gather(*(text_of(toolkit, make_scope(f"u{n}"), "alpha", x=n) for n in range(40)))

    assert texts == [f"alpha {n}" for n in range(40)]
