"""However a secret is written, the ledger's redactor and that of an export take it out; what only looks like one stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.sessions.lines.redact import default_redactor
from harness.transcripts import read
from harness.transcripts.export import Redaction, redact_transcript

BODY = {"user": "alice", "password": "hunter22"}
LEAKS: dict[str, Any] = {
    "an object": BODY,
    "a number": {"password": 4711147111},
    "numbers in a list": {"passwords": [4711147111, "hunter22"]},
    "an object with a type of its own": {"credentials": {"type": "bearer", "value": "hunter22"}},
    "an object that tells what it is": {"secret": {"description": "to log in", "value": "hunter22"}},
    "a schema with a secret in it": {"token": {"type": "string", "default": "password=hunter22"}},
    "JSON": json.dumps(BODY),
    "JSON of a word": json.dumps({"user": "hunter", "secret": "hunter22"}),
    "indented JSON": json.dumps({"a": [BODY]}, indent=2),
    "JSON of a number": json.dumps({"password": 4711147111}),
    "JSON of a list": json.dumps({"secrets": ["hunter22", 4711147111]}),
    "JSON of an object": json.dumps({"secret": {"a": {"b": "hunter22"}}}),
    "JSON in JSON": json.dumps({"body": json.dumps(BODY)}),
    "JSON in JSON in JSON": json.dumps({"body": json.dumps({"body": json.dumps({"secret": ["hunter22"]})})}),
    "JSON with escapes": '{"p\\u0061ssword": "hunter22"}',
    "JSON lines": "\n".join(json.dumps({"n": n, "secret": {"a": "hunter22"}}) for n in range(3)),
    "JSON lines among others": 'began\n{"secret": ["hunter22"]}\nended',
    "JSON in a command": "curl -d '{\"secret\": {\"a\": \"hunter22\"}}' x",
    "escaped JSON in a command": 'curl -d "{\\"secret\\": {\\"a\\": \\"hunter22\\"}}" x',
    "an escaped text in a command": 'curl -d "{\\"password\\": \\"hunter22\\"}" x',
    "a twice escaped text": 'sh -c "curl -d \\"{\\\\\\"password\\\\\\": \\\\\\"hunter22\\\\\\"}\\""',
    "headers in JSON": {"headers": {"X-Api-Key": "hunter22", "Proxy-Authorization": "hunter22"}},
    "a header": "GET / HTTP/1.1\nX-Api-Key: hunter22\nHost: x",
    "a header of one's own": "x-auth-token: hunter22",
    "a header of several parts": 'Authorization: Digest username="a", realm="x y", response="hunter22"',
    "a header of plain parts": "Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host;date, Signature=hunter22",
    "a header in single quotes": "curl -H 'Authorization: Digest username=\"a\", response=\"hunter22\"' x",
    "a header in escaped quotes": 'sh -c "curl -H \\"Authorization: Digest a=\\\\\\"b\\\\\\", c=\\\\\\"hunter22\\\\\\"\\""',
    "a header for a proxy": "Proxy-Authorization: ApiKey hunter22",
    "cookies": "Cookie: theme=dark; sid=hunter22; x=hunter22",
    "a cookie with quotes": 'Cookie: theme="dark blue"; sid=hunter22',
    "a long cookie": f"Cookie: a={'x' * 5000}; sid=hunter22",
    "a flag": "login --password hunter22",
    "a flag with a sign": "login --db-password=hunter22 now",
    "an arrow": "{ 'password' => 'hunter22', \"secret\" => hunter22 }",
    "an arrow behind a symbol": "[:password => 'hunter22', :token => hunter22]",
    "a declaration": 'password := "hunter22"',
    "a plain declaration": "password := hunter22",
    "long quotes": 'password = """hunter22 "and" more hunter22"""',
    "long quotes over lines": "secret = '''\nhunter22\n'''\nnext = 1",
    "long quotes that stay open": 'password = """hunter22\nhunter22',
    "a long value": f'password = "{"x y" * 500}hunter22"',
    "an open quote": 'password = "hunter22',
    "an open quote on a line": "password: 'hunter22 and more\nnext: 1",
    "a quote in a quote": 'password: "a\\"hunter22" end',
    "a value in brackets": "login(user='a', password='hunter22')",
    "behind an apostrophe": "it's here: password: 'hunter22'",
    "YAML": "db:\n  user: a\n  password: hunter22\n",
    "an environment": "export DB_PASSWORD=hunter22 API_KEY='hunter22'",
    "a query": "https://host/a?x=1&password=hunter22&y=2",
    "an address": "redis://a:hunter22@host/0",
    "XML": "<password>hunter22</password>",
    "what is aligned": "db_user            = a\npassword           = hunter22\ntoken\t\t\t\t= hunter22",
    "what is aligned behind a colon": "user:           a\npassword:       hunter22",
    "what has a type": "class Login:\n    password: str = 'hunter22'\n",
    "what has several types": 'def login(token: Optional[str] | None = "hunter22"): ...',
    "what has a prefix": "{'password': b'hunter22', 'user': b'a'}, login(token=Rb\"hunter22\")",
    "a quote of a shell": "export PASSWORD=$'hunter22'",
    "what begins like no value": "password=null-hunter22 token=None.hunter22",
    "a variable with a comma": "A=1\nDB_PASSWORD=ab,hunter22\nexport API_KEY=a;hunter22",
    "a variable with a backslash": "DB_PASSWORD=ab\\hunter22",
    "a block of YAML": "db:\n  password: |\n    ab\n\n      hunter22\n    hunter22\n  user: a",
    "a folded block of YAML": "- token: >-\n    hunter22\n",
    "what is added": "password += 'hunter22'\nPASSWORD ?= hunter22",
}  # fmt: skip
KEPT: dict[str, Any] = {
    "prose": "Choose a password with care; the password is never shown, and a token is a part of a word.",
    "prose with a colon": "The secret: everything changes. The token: a part of a word. Password: required.",
    "a prompt": 'input("Password: "), input("and again")',
    "a prompt and more": 'print("Enter your password: ") or print("Enter your token: ", 12345)',
    "a call": "password = getpass()",
    "a call with words": 'password = getpass.getpass("Your password: ")',
    "a function": "def login(user: str, password: str, token: str | None = None) -> str:",
    "types": "password: string; token?: string; secret: Optional[str]; password: Optional[str]",
    "a comparison": "if key == other and password == confirmed and token == expected12:",
    "no comparison": "if password != confirmed or token != expected12: raise ValueError",
    "an argument": "connect(user=user, password=password, token=token)",
    "an attribute": "connect(user=self.user, password=self.password)",
    "an attribute of an attribute": "password = settings.database.password",
    "a variable": "password = new_password",
    "an index": 'password = os.environ["DB_PASSWORD"]',
    "another index": "password = form['password']; token = data[0]",
    "a variable of a shell": 'PGPASSWORD=$PASSWORD psql; login --password "$PASSWORD"; password="${DB_PASSWORD}"',
    "what is filled in": "password='%s' password='{password}' password={{ password }} password=\"<your password>\"",
    "a statement": "UPDATE users SET password = :password WHERE token = ?",
    "joined texts": "\"password='\" + word + \"'\"",
    "a lambda": "tokens.map(token => token.id12345)",
    "a count": {"max_tokens": 4096, "tokens": 512, "token": 12, "completion_tokens": 123456},
    "counts in JSON": json.dumps({"max_tokens": 4096, "usage": {"tokens": 512345, "prompt_tokens": 123456}}),
    "counts in text": "max_tokens: 4096, tokens=512345, total tokens: 123456",
    "counts in arguments": "complete(max_tokens=4096, tokens_per_minute=100000)",
    "a schema": {"properties": {"token": {"type": "string"}, "password": {"type": ["string", "null"], "minLength": 8}}},
    "a schema in JSON": json.dumps({"properties": {"token": {"type": "string", "description": "of 8 signs"}}}, indent=1),
    "a schema in a program": 'SCHEMA = {"token": {"type": "string"}, "password": {"$ref": "#/definitions/a1"}}\nnext',
    "a definition of a tool": json.dumps({"name": "login", "parameters": {"password": {"type": "string", "enum": []}}}),
    "no value": {"password": "", "token": None, "secret": False},
    "no value in JSON": '{"password": "", "token": null, "secret": false, "api_key": {}}',
    "no value in a program": "password = None\ntoken = null\nsecret = \"\"\npassword = ''\n",
    "flags of a manual": "usage: login --password PASSWORD --token <token> [--secret SECRET]",
    "an option": 'parser.add_argument("--password", help="the password to use", default=None)',
    "a field of a form": '<input type="password" name="password" id="a12345">',
    "a header without a value": "The Authorization header, and `Authorization: Bearer <token>`, are explained in 4.2.",
    "prose of cookies": "Cookie: a small file that a site leaves behind",
    "names that begin alike": "tokenizer = 'words123', passport: 12345678, keyboard=qwerty123, secretary: a1234567",
    "names that end alike": "monkey: banana123, COMPASS=north-1, turkey = 12345678",
    "a key of a table": 'key: "users:42", primary_key: 123456, foreign_key="a1b2c3d4"',
    "a list of words": ["password", "token", "secret", "--help"],
    "JSON as it was written": '{ "a" :1.0,\n "b": [ "tokens" ],  "token_count": 5 }',
    "JSON lines as they were written": '{ "key": 1 }\n{ "key": 2 }',
    "brackets": "secrets[0], token[1], {secret}, passwords = [], secrets = {}",
    "what is aligned in a program": "password        = new_password\ntoken           = getpass()\nsecret          : str",
    "types with a value": "class A:\n    password: str = ''\n    token: str | None = None\n    secret: str = Field(default=None)",
    "no prefix": "ask(\"password: b\", 'x1'); ask('token: r', \"and 1\")",
    "a table": "| password: |\n| token: |\n",
    "an empty block": "password: |\nuser: abc12345\n",
    "no value in a sentence": "With password=None. Or token=null, or `secret=None`: nothing.",
    "arguments on lines": "login(\n    user=user,\n    password=password,\n    token=token,\n)",
    "an error": "401: password incorrect. token: expired. password: invalid, secret: missing",
}  # fmt: skip


def in_a_call(item: Any) -> dict[str, Any]:
    """A message with it as an argument and as a result."""
    texts = [{"type": "text", "text": item}] if isinstance(item, str) else []
    call = {"type": "toolUse", "id": "c1", "name": "run", "input": item if isinstance(item, dict) else {"body": item}}
    return {"role": "assistant", "content": [call, *texts]}


def exported(folder: Path, message: dict[str, Any]) -> list[dict[str, Any]]:
    path = folder / "transcript.jsonl"
    head = {"type": "transcript", "version": 1, "format": "other", "harness": "Other", "sessionId": "s1"}
    turn = {"type": "turn", "kind": "answer", "at": "2026-03-01T10:00:00.000Z", "message": {"id": "b1", **message}}
    path.write_text(f"{json.dumps(head)}\n{json.dumps(turn)}\n")
    return list(redact_transcript(read(path), Redaction())[0].turns[0].blocks)


@pytest.mark.parametrize("way", list(LEAKS))
def test_a_secret_goes_however_it_is_written(tmp_path: Path, way: str) -> None:
    before = in_a_call(LEAKS[way])

    stored = default_redactor(before)["content"]

    assert [word for word in ("hunter22", "4711147111") if word in json.dumps(before)]
    for left in (stored, exported(tmp_path, before)):
        assert not [word for word in ("hunter22", "4711147111") if word in json.dumps(left)]
        assert "[redacted]" in json.dumps(left)
    assert default_redactor({"content": stored})["content"] == stored


@pytest.mark.parametrize("way", list(KEPT))
def test_what_only_looks_like_a_secret_stays(tmp_path: Path, way: str) -> None:
    before = in_a_call(KEPT[way])
    assert default_redactor(before) == before
    assert exported(tmp_path, before) == before["content"]


def test_json_that_loses_a_secret_is_still_json_and_says_the_same_else() -> None:
    said = json.dumps({"n": [1, 2.5, None], "deep": json.dumps({"secret": 4711147111, "b": "kept"})}, indent=2)
    found = json.loads(default_redactor({"text": said})["text"])
    assert (found["n"], json.loads(found["deep"])) == ([1, 2.5, None], {"secret": "[redacted]", "b": "kept"})


def test_what_is_too_deep_to_be_opened_loses_what_shows_in_its_text() -> None:
    said: Any = {"password": "hunter22"}
    for level in range(480):
        said = [json.dumps(said)] if level in (120, 240, 360) else [said]
    for _ in range(120):
        said = {"a": said} if isinstance(said, dict) else {"a": json.dumps(said)}
    assert "hunter22" not in str(default_redactor({"input": said}))


@pytest.mark.parametrize(
    "piece",
    ['"secret":[', '"secret":{"a":"b"', "password='\"", "x-key: ", 'authorization: digest a="', 'cookie: a="', '{"password":"a"}\n', "password: |\n", "password: a[", "password   \n", "\nA_TOKEN=,"],
)  # fmt: skip
def test_the_work_for_what_is_never_closed_grows_with_the_text(piece: str) -> None:
    """Counted, not timed: what each look takes is bounded, or is passed over for good."""
    assert default_redactor({"text": piece * 20_000})["text"] is not None
