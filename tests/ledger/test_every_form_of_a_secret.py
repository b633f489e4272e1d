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
    "an index of a program": "os.environ[\"DB_PASSWORD\"] = 'hunter22'",
    "what is taken where nothing is": "os.environ.setdefault('SECRET_KEY', 'hunter22')",
    "what is taken where nothing is, in JSON": json.dumps({"a": 'env.get("DB_PASSWORD", "hunter22")'}),
    "several quotes of a shell": "export PASSWORD='ab'\"'\"'hunter22'",
    "a quote with a variable before it": 'password = f"hunter22"',
    "a key of an account": "Endpoint=x;AccountKey=hunter22hunter22==;Suffix=y",
    "a login of a registry": {"auths": {"r": {"auth": "QWxhZGRpbjpPcGVuhunter22"}}},
    "a login of a registry in JSON": json.dumps({"auths": {"r": {"auth": "QWxhZGRpbjpPcGVuhunter22"}}}),
    "a variable of an image": "FROM x\nENV SECRET_KEY hunter22\n",
    "a variable of Windows": "setx API_TOKEN hunter22",
    "a pair": {"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]},
    "a pair in JSON": json.dumps({"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}, indent=1),
    "a pair in YAML": "env:\n  - name: DB_PASSWORD\n    value: hunter22\n",
    "a pair in XML": '<add key="ApiKey" value="hunter22"/>',
    "a login in a call": "get(url, auth=('bob', 'hunter22'))",
    "another login in a call": 'HTTPBasicAuth("bob", "hunter22")',
    "a cell": "| DB_PASSWORD | `hunter22` |",
    "a column of Markdown": "| user | password |\n|---|---|\n| a | hunter22 |\n| b | hunter22 |",
    "a column": "id,password,name\n1,hunter22,a\n2,hunter22,b\n",
    "a column between tabs": "id\tapi_key\n1\thunter22\n",
    "an encoded query": "https://h/?next=%2Fa%3Fpassword%3Dhunter22%26x%3D1",
    "an encoded address": "https://h/?to=https%3A%2F%2Fbob%3Ahunter22%40h",
    "a hook of Slack": "https://hooks.slack.com/services/T000/B000/hunter22",
    "a hook of Discord": "https://discord.com/api/webhooks/1234567/hunter22",
    ".pgpass": "# c\nhost:5432:db:bob:hunter22\n*:*:*:bob:hunter22",
    "/etc/shadow": "bob:$6$salt$hunter22hunter22hunter22:19000:0:99999:7:::",
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
    "the folder of a shell": "SHELL=/bin/bash\nPWD=/work/main-2\nOLDPWD=/srv/app1\nexport PWD=/x/y1; pwd: /home/user1",
    "folders": {"pwd": "/home/u1/project", "PWD": "C:\\Users\\a1", "cwd": "/a", "env": json.dumps({"pwd": "~/u1"})},
    "the folder of a shell, in JSON": json.dumps({"log": "A=1\n\tPWD=/work/main1"}),
    "the folder of a shell, in a pair": {"env": [{"name": "PWD", "value": "/work/main1"}]},
    "paths": {"passwd": "/etc/passwd", "private_key": "path/to/key1.pem", "secret": "/run/secrets/db", "privateKey": "~/k1.pem"},
    "paths in JSON": '{"passwd": "/etc/passwd", "private_key": "path/to/key1.pem"}',
    "what a model wrote": {"logprobs": [{"token": "the", "logprob": -0.1}, {"token": " 1234", "logprob": -2}]},
    "what a model wrote, in JSON": '{"logprobs":[{"token":"Hello","logprob":-0.3},{"token":"12345","logprob":-1}]}',
    "what a parser says": {"token": {"kind": "Ident", "at": 7}, "next": {"token": "identifier", "line": 3}},
    "what a parser says, in JSON": '[{"token": "identifier", "line": 3}, {"token": {"kind": "Ident", "at": 7}}]',
    "what is filled in, in an object": {"api_key": "$API_KEY", "password": "{{ password }}", "apiKey": "<your key>"},
    "what is filled in, in JSON": '{"api_key": "${{ secrets.KEY1 }}", "password": "{{ password }}", "secret": "${DB_SECRET}"}',
    "words of a protocol": {"credentials": "include", "authorization": "required", "token": "bearer"},
    "words of a protocol in a program": 'fetch(url, {credentials: "same-origin", "credentials": "include"})',
    "an index without a value": 'body["password"] = made1; form["token"] = form["other1"]',
    "a call with a message": 'form.get("password", "no such field"); get("token", default)',
    "a pair without a secret": {"fields": [{"name": "user1", "value": "a12345"}, {"name": "token", "value": "none"}]},
    "a table of names": "| token | kind |\n|---|---|\n| plus | sign |\n\n| password | the word to log in 1 |",
    "a table without secrets": "token,count,name\nthe,12,a1b2c3d4\n",
    "an address of a page": "https://slack.com/services/T0001234, https://h/?a%3Db12345678, host:8080:a:b:c12345",
    "a pattern of names": "(?:key|password|secret|token)(?:x{0,3}), secret|token|[^0-9]+, a || token|b1c2d3e4",
    "a price": "$5 and $6, `$1$2`, $HOME/$USER",
    "an error": "401: password incorrect. token: expired. password: invalid, secret: missing",
}  # fmt: skip

IN_DOUBT: list[tuple[str, str]] = [
    *((name, "abcdefghijklmnop") for name in ("token", "bot_token", "access_token", "accessToken", "API_TOKEN")),
    *(
        (name, "include")
        for name in ("session_token", "refreshToken", "password", "secret", "db_credentials", "api_key")
    ),
    *((name, "opensesame") for name in ("authorization", "credentials", "proxy-authorization", "TOKEN")),
    ("token", "!!!!"),
    ("session_token", "kq zx wv"),
    *((name, "P4ssw0rd.txt") for name in ("password", "secret", "api_key", "token", "private_key", "pwd")),
    *(("password", path) for path in ("hunter.key", "/correct/horse", "a/b/hunter.pem", "~/hunter", "C:\\hunter")),
    *((name, "/hunter/two.pem") for name in ("secret", "DB_PWD", "my-pwd", "api_key", "token")),
    *(("password", place) for place in ("{hunter2}", "{a9f8-secret}", "{{Tr0ub4dor&3}}", "{{hunter}}", "${hunter}")),
    *(("password", place) for place in ("<hunter2>", "<hunter>", ":swordfish", "%HUNTER%", "$HUNTERTWO", "$hunter")),
    *(("password", place) for place in ("${{ hunter }}", "{{ Hunter2 }}", "$(hunter)", "****", "?", "${DB_X:-hunter}")),
    ("pwd", "hunter"),
]
"""Names and what may be a secret under them: a word, a path, what looks like a place to fill in."""
IN_DOUBT_IN_TEXT = {
    "TOKEN='CorrectHorse'": "CorrectHorse",
    '"access_token": "zzzzzzzzzzzzzzzz"': "zzzzzzzzzzzzzzzz",
    "secret=s3cr3t@home.json": "s3cr3t@home.json",
    "PASSWORD=hunter.pem": "hunter.pem",
    'password="abc.key"': "abc.key",
    "password=/correct/horse": "/correct/horse",
    "DB_PASSWORD=%HUNTER%": "%HUNTER%",
    "mysqlPwd=/S3cr3tx": "/S3cr3tx",
    "userpwd='/S3cr3tx'": "/S3cr3tx",
    "MYSQL_PWD=/S3cr3tx": "/S3cr3tx",
    "login.pwd: /S3cr3tx": "/S3cr3tx",
    "| password | {hunter2} |": "{hunter2}",
}  # fmt: skip
"""What text assigns to such names, and what goes of it."""


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


@pytest.mark.parametrize(("name", "value"), IN_DOUBT)
def test_what_may_be_a_secret_under_its_name_goes(tmp_path: Path, name: str, value: str) -> None:
    member = {name: value}
    pairs = {"env": [{"name": name, "value": value}]}
    before = in_a_call({"a": member, "b": json.dumps([member]), "c": pairs, "d": {name: [value, {"text": value}]}})

    for blocks in (default_redactor(before)["content"], exported(tmp_path, before)):
        left = blocks[0]["input"]
        assert left["a"] == {name: "[redacted]"}
        assert json.loads(left["b"]) == [{name: "[redacted]"}]
        assert left["c"] == {"env": [{"name": name, "value": "[redacted]"}]}
        assert left["d"] == {name: ["[redacted]", {"text": "[redacted]"}]}


@pytest.mark.parametrize("text", list(IN_DOUBT_IN_TEXT))
def test_what_may_be_a_secret_in_a_text_goes(text: str) -> None:
    found = default_redactor({"text": f"{text} end"})["text"]
    assert found == f"{text} end".replace(IN_DOUBT_IN_TEXT[text], "[redacted]")


@pytest.mark.parametrize("name", ["type", "kind", "scheme"])
def test_of_a_token_of_a_parser_only_a_known_word_says_what_it_is(name: str) -> None:
    found = default_redactor(
        {"input": {"token": {name: "keyword", "text": "include"}, "credentials": {name: "opensesame"}}}
    )
    assert found["input"] == {"token": {name: "keyword", "text": "[redacted]"}, "credentials": {name: "[redacted]"}}


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
    ['"secret":[', '"secret":{"a":"b"', "password='\"", "x-key: ", 'authorization: digest a="', 'cookie: a="', '{"password":"a"}\n', "password: |\n", "password: a[", "password   \n", "\nA_TOKEN=,", "password,", "password,a\n", "|password |", "|  ", "key:", "name: token, value: ", "auth('a','", 'get("token","', "pass='a'\"'", "password='{", "token%3d", "%3a%2f%2fa%3a", "$6$", "a:5432:", "\nENV TOKEN "],
)  # fmt: skip
def test_the_work_for_what_is_never_closed_grows_with_the_text(piece: str) -> None:
    """Counted, not timed: what each look takes is bounded, or is passed over for good."""
    assert default_redactor({"text": piece * 20_000})["text"] is not None
