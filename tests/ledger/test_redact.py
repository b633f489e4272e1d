"""Secrets are taken out before anything is stored or hashed, everywhere, in linear work."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import (
    ALICE,
    agent_of,
    call_of,
    context_folder,
    inexact,
    json_lines,
    ledger,
    of_kind,
    sessions_folder,
    shown,
)

from harness import HarnessAgent
from harness.errors import ConfigError
from harness.hooks import CompactionConfig
from harness.messages import Msg, Opaque, ThinkingBlock
from harness.sessions.lines.redact import default_redactor, redact_texts
from harness.sessions.lines.secrets import _SHAPES
from harness.testing import ScriptedModel
from harness.tools import tool

SECRET = "sk-proj-4f9aQ2hT7xLmN0pRs8vW"


SHAPES = (
    *("gsk_", "xai-", "nvapi-", "hvs.", "dckr_pat_", "dop_v1_", "shpat_", "lsv2_pt_", "r8_", "pplx-", "tvly-"),
    *("ATATT3x", "sntrys_", "sntryu_"),
)
"""How keys of some providers begin."""


def redacted_text(text: str) -> str:
    return default_redactor({"text": text})["text"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"my key is {SECRET}.", "my key is [redacted]."),
        ("export OPENAI_API_KEY=abcdefgh1234", "export OPENAI_API_KEY=[redacted]"),
        ("password: hunter2 and on", "password: [redacted] and on"),
        ("passwd=correct-horse", "passwd=[redacted]"),
        ('{"client_secret": "quite-a-secret"}', '{"client_secret": "[redacted]"}'),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted]"),
        ("-H 'Authorization: Basic dXNlcjpwYXNz=='", "-H 'Authorization: Basic [redacted]'"),
        ("postgres://app:s3cr3t@db/x", "postgres://app:[redacted]@db/x"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        ("AGE-SECRET-KEY-1ZX9KQ2VLMN7PT4WR8SYBZX9KQ2VLMN7PT4", "[redacted]"),
        ("xoxb-123456789012-abcdef", "[redacted]"),
        ("AIzaSyA1234567890123456789012345678901x", "[redacted]"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "[redacted]"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"),
        ("-----BEGIN PRIVATE KEY-----\nMII, cut off", "[redacted]"),
        ("Cookie: session=abc; theme=dark\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("< Set-Cookie: sid=abc; Path=/", "< Set-Cookie: [redacted]"),
        ("https://x.org/a?key=Zq01hunter7Wx&b=1", "https://x.org/a?key=[redacted]&b=1"),
        ("https://x.org/a?b=1&sig=Zq01hunter", "https://x.org/a?b=1&sig=[redacted]"),
        ("https://x.org/?token=Zq01hunter#top", "https://x.org/?token=[redacted]#top"),
        ("curl -sS -u alice:pa55 https://x", "curl -sS -u alice:[redacted] https://x"),
        ("curl --user 'alice:pa55' https://x", "curl --user 'alice:[redacted]' https://x"),
        ("login --password hunter2", "login --password [redacted]"),
        ("login --db-password 'my words'", "login --db-password '[redacted]'"),
        ('["login", "--token", "Zq01hunter"]', '["login", "--token", "[redacted]"]'),
        ("DB_PASS=quitelong", "DB_PASS=[redacted]"),
        ("SECRET_KEY_BASE=0123abcd", "SECRET_KEY_BASE=[redacted]"),
        ("machine h login u password pw", "machine h login u password [redacted]"),
        ("machine h\n  login u\n  password pw", "machine h\n  login u\n  password [redacted]"),
        ("<password>pwpw</password>", "<password>[redacted]</password>"),
        ('<db:Token a="b">t0ken</db:Token>', '<db:Token a="b">[redacted]</db:Token>'),
        ('password: "two words"', 'password: "[redacted]"'),
        ("password = 'a b \\' c'", "password = '[redacted]'"),
        (r"{\"password\": \"hunter\"}", r"{\"password\": \"[redacted]\"}"),
        (r"\\\"api_key\\\":\\\"Zq01hunter\\\"", r"\\\"api_key\\\":\\\"[redacted]\\\""),
        *((f"{shape}Zx9kQ2vLmN7pT4wR8sYb{'a1' * 10} end", "[redacted] end") for shape in SHAPES),
        ("pass\u200bword=hun\u2060ter2", "password=[redacted]"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, kept: str) -> None:
    assert redacted_text(text) == kept
    assert redacted_text(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096",
        "def f(token: string, key: int)",
        "password = ask_user()",
        "The secret: everything changes.",
        "see https://example.org/a:b@c",
        "pk_customers_email_address",
        "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
        "日本語のテキスト",
        "Cookie: a small file that a site leaves behind",
        "https://x.org/?key=name&token=none&sig=yes",
        "https://x.org/?page=12345678&key=issue-12",
        "docker run -u 1000:1000 image",
        "usage: --password PASSWORD  --token TOKEN, to log in",
        'parser.add_argument("--token", "-t", help="the token to use")',
        "login --password $PASSWORD --token <your token>",
        "first_pass=compute1 and DB_PASS is set",
        "COMPASS=north-1 bypass=always1",
        "machine learning needs no login and no password prompt",
        "<token>word</token> <passage>12345</passage>",
        "the token is sha256-based; the key: value pairs; a password reset",
        "a family 👨\u200d👩\u200d👧 and a\u200bword",
        'tokenizer = "words with spaces"; secret = "nothing but words here"',
    ],
)
def test_words_of_prose_and_programs_stay(text: str) -> None:
    assert redacted_text(text) == text


def test_a_member_with_the_name_of_a_secret_loses_its_text() -> None:
    before = {"input": {"password": "two words", "apiKey": "x", "max_tokens": 5, "id": SECRET, "user": "alice"}}
    after = {"input": {"password": "[redacted]", "apiKey": "[redacted]", "max_tokens": 5, "id": "[redacted]", "user": "alice"}}  # fmt: skip
    assert default_redactor(before) == after


def test_what_is_no_word_of_a_protocol_goes_under_any_name() -> None:
    before = {
        "token": "opens-it",
        "next_token": "aBcDeFgHiJkL",
        "credentials": "x" * 17,
        "secret": "word",
        "db_pwd": "/a/b1",
    }
    assert set(default_redactor({"input": before})["input"].values()) == {"[redacted]"}
    assert redacted_text('PASSWORD="${DB:-hunter22}" DB_PWD=/hunter22').count("[redacted]") == 2


def test_lists_and_objects_under_the_name_of_a_secret_lose_their_texts() -> None:
    before = {
        "passwords": ["one", "two"],
        "secret": {"value": "three", "version": 2},
        "db_pass": "four",
        "dbPassword": "x",
    }
    after = {
        "passwords": ["[redacted]", "[redacted]"],
        "secret": {"value": "[redacted]", "version": 2},
        "db_pass": "[redacted]",
        "dbPassword": "[redacted]",
    }
    assert default_redactor({"input": before}) == {"input": after}


def test_a_parameter_with_the_name_of_a_secret_is_none() -> None:
    schema = {"properties": {"password": {"type": "string", "description": "to log in"}, "token": {"$ref": "#/x"}}}
    assert default_redactor({"schema": schema}) == {"schema": schema}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["login", "--password", "words"], ["login", "--password", "[redacted]"]),
        (["login", "--token", "--force"], ["login", "--token", "--force"]),
        (["/usr/bin/curl", "-u", "alice:pw", "x"], ["/usr/bin/curl", "-u", "alice:[redacted]", "x"]),
        (["docker", "-u", "1000:1000", 5], ["docker", "-u", "1000:1000", 5]),
        (["Cookie", "password", "words"], ["Cookie", "password", "words"]),
    ],
)
def test_a_command_as_a_list_loses_its_secrets(words: list[object], kept: list[object]) -> None:
    assert default_redactor({"input": {"argv": words}}) == {"input": {"argv": kept}}


def test_a_cookie_among_headers_goes() -> None:
    assert default_redactor({"input": {"Cookie": "sid=abc", "Accept": "a=b"}}) == {
        "input": {"Cookie": "[redacted]", "Accept": "a=b"}
    }


def test_a_name_that_is_a_secret_goes_and_its_value_stays() -> None:
    key = f"ghp_{'a1' * 18}"
    block = {"type": "toolUse", "id": key, "input": {key: 1, f"{key}b": {key: 2}, "path": 3}}

    found = default_redactor({"content": [block]})["content"][0]

    assert found["input"] == {"[redacted]": 1, "[redacted]#2": {"[redacted]": 2}, "path": 3}


def test_what_names_things_stays() -> None:
    call = {"type": "toolUse", "id": SECRET, "name": "look", "input": {}}
    assert default_redactor({"id": SECRET, "role": "assistant", "content": [call]})["content"] == [call]


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJaaaaaaaa.",
        "token=",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "sk-",
        "bearer ",
        "curl -u a:b ",
        "--password ",
        "--a-",
        "&token=a",
        "cookie: a=",
        "<a-token ",
        "machine a login ",
        'password="a',
        'password=\\"',
        '"--token", ',
        "\\" * 9,
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Counted, not timed: every pattern either stands alone or gives nothing back."""
    assert redacted_text(piece * 200_000) is not None


def test_every_open_ended_part_of_a_pattern_gives_nothing_back() -> None:
    assert re.findall(r"\{\d+,\}(?!\+)|[\]\w]\+(?!\+)|\*(?!\+)", re.sub(r"#.*|\[[^\]]*\]", "x", _SHAPES.pattern)) == []


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@tool
async def fetch(url: str, password: str) -> str:
    """Fetch a page."""
    return f"got {url} with {password}: token={SECRET}"


async def test_nothing_of_a_secret_reaches_any_file_or_the_model(workspace: Path) -> None:
    model = ScriptedModel([[call_of("fetch", url="https://u:pa55word@host/", password=SECRET)], f"I used {SECRET}."])
    async with agent_of(
        workspace, model, fetch, redact=True, system_prompt=f"Use {SECRET}.", durability="every"
    ) as agent:
        reply = await agent.call(f"Use the key {SECRET}.", ALICE)
        assert [info.title for info in await agent.sessions("alice").list()] == ["Use the key [redacted]."]
        await agent.sessions("alice").rename("s1", f"About {SECRET}")
        assert [info.title for info in await agent.sessions("alice").list()] == ["About [redacted]"]
        assert await inexact(agent, ALICE) == []
    assert reply.text == f"I used {SECRET}."
    written = everything(workspace)
    assert SECRET.encode() not in written
    assert b"pa55word" not in written
    assert shown(model.requests[1])[0] == ("user", "Use the key [redacted].")
    assert model.requests[1].system == "Use [redacted]."


async def test_tools_run_with_what_the_model_asked_for(workspace: Path) -> None:
    seen = []

    @tool
    async def login(password: str) -> str:
        """Log in."""
        seen.append(password)
        return "in"

    model = ScriptedModel([[call_of("login", password=SECRET)], "done"])
    async with agent_of(workspace, model, login, redact=True) as agent:
        await agent.call("log in", ALICE)
    assert seen == [SECRET]
    use = model.requests[1].messages[1].tool_uses[0]
    assert (use.name, use.input) == ("login", {"password": "[redacted]"})


class Vault:
    """A state module with a secret in it."""

    name = "vault"

    def save(self):
        return {"api_key": SECRET, "count": 1}

    def load(self, value):
        assert value == {"api_key": "[redacted]", "count": 1}


async def test_states_are_stored_without_secrets_in_both_tracks_and_once(workspace: Path) -> None:
    for _ in range(2):
        async with agent_of(workspace, ScriptedModel(["ok"]), redact=True, state_module=Vault) as agent:
            await agent.call("hi", ALICE)
    stored = [entry["value"] for entry in of_kind(ledger(workspace), "state") if entry["module"] == "vault"]
    assert stored == [{"api_key": "[redacted]", "count": 1}]
    assert json_lines(context_folder(workspace) / "vault.json") == stored


async def test_a_summary_is_stored_and_shown_without_secrets(workspace: Path) -> None:
    summariser = ScriptedModel([f"The key was {SECRET}."])
    config = CompactionConfig(trigger_messages=50, keep_messages=0, model=summariser)
    async with agent_of(workspace, ScriptedModel(["ok"]), redact=True, compaction=config) as agent:
        await agent.call("hi", ALICE)
        assert await agent.sessions("alice").compact("s1", f"Keep {SECRET}.")
        assert (await agent.sessions("alice").verify("s1")).ok
        assert await inexact(agent, ALICE) == []
    assert SECRET not in str(ledger(workspace))
    assert SECRET not in str(summariser.requests[0].messages)


async def test_sealed_reasoning_with_a_secret_in_it_is_not_sent_again(workspace: Path) -> None:
    sealed = ThinkingBlock(text="hm", opaque=Opaque(provider="scripted", model="scripted", data={"thinking": SECRET}))
    clean = ThinkingBlock(text="so", opaque=Opaque(provider="scripted", model="scripted", data={"sealed": "abc="}))
    model = ScriptedModel([Msg.assistant(sealed, "one"), Msg.assistant(clean, "two"), "three"])
    async with agent_of(workspace, model, redact=True) as agent:
        for prompt in ("a", "b", "c"):
            await agent.call(prompt, ALICE)
    thought = [block for message in model.requests[2].messages for block in message.blocks if block.type == "thinking"]
    assert [block.opaque.data for block in thought] == [{"sealed": "abc="}]


async def test_a_redactor_of_ones_own_sees_every_text(workspace: Path) -> None:
    own = redact_texts(lambda text: text.replace("Zanzibar", "***"))
    model = ScriptedModel(["To Zanzibar."])
    async with agent_of(workspace, model, redact=own) as agent:
        await agent.call("To Zanzibar?", ALICE)
    assert b"Zanzibar" not in (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    assert shown(model.requests[0]) == [("user", "To ***?")]


async def test_a_redactor_cannot_change_by_what_a_message_is_known(workspace: Path) -> None:
    async with agent_of(
        workspace, ScriptedModel(["ok"]), redact=lambda value: {**value, "id": "x", "role": "y"}
    ) as agent:
        await agent.call("hi", ALICE)
    messages = [entry["message"] for entry in of_kind(ledger(workspace), "message")]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert len({message["id"] for message in messages}) == 2


async def test_a_redactor_that_gives_no_object_stores_nothing(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["ok"]), redact=lambda value: None) as agent:
        with pytest.raises(ConfigError, match="redactor"):
            await agent.call(f"Use {SECRET}.", ALICE)
    assert not (sessions_folder(workspace) / "s1.log.jsonl").exists()


async def test_without_the_option_everything_is_stored_as_it_was_said(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["ok"])) as agent:
        await agent.call(f"Use {SECRET}.", ALICE)
    assert SECRET in str(ledger(workspace))


async def test_options_go_to_the_model_as_they_are_and_are_stored_without_secrets(workspace: Path) -> None:
    options = {"extra_headers": {"Authorization": "Bearer abc.def-123456", "X-Team": "notes"}, "user": SECRET}
    model = ScriptedModel(["one", "two"])
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).redact()
    async with builder.model_options(**options).build() as agent:
        await agent.call("hi", ALICE)
        await agent.call("again", ALICE)
        assert await inexact(agent, ALICE) == []
    (binding,) = of_kind(ledger(workspace), "binding")
    assert binding["options"] == {
        "extra_headers": {"Authorization": "[redacted]", "X-Team": "notes"}, "user": "[redacted]",
    }  # fmt: skip
    assert model.requests[1].options == options
