"""Passwords that only their program, or their decoding, gives away are taken out; what merely looks like them stays."""

import pytest

from harness.sessions.lines.secrets import is_secret_flag, without_secrets


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("mysql -uroot -phunter shop < dump.sql", "mysql -uroot -p[redacted] shop < dump.sql"),
        ("cat x.sql | mariadb-dump -p'two words' shop", "cat x.sql | mariadb-dump -p'[redacted]' shop"),
        ('["mysql", "-phunter", "shop"]', '["mysql", "-p[redacted]", "shop"]'),
        ("sshpass -p hunter ssh -p 2222 box", "sshpass -p [redacted] ssh -p 2222 box"),
        ('["sshpass", "-p", "hunter", "ssh"]', '["sshpass", "-p", "[redacted]", "ssh"]'),
        ("mongosh -u me -p hunter --port 27017", "mongosh -u me -p [redacted] --port 27017"),
        ("docker login -u me -p hunter box", "docker login -u me -p [redacted] box"),
        ("redis-cli -h box -a hunter ping", "redis-cli -h box -a [redacted] ping"),
        ("az login --password letmein -u me", "az login --password [redacted] -u me"),
        ("tool --db-pass letmein --host box", "tool --db-pass [redacted] --host box"),
        ("sent headers: Basic bWU6bGV0bWVpbg== and so on", "sent headers: Basic [redacted] and so on"),
        ("Authorization: Basic bWU6bGV0bWVpbm5vdw", "Authorization: Basic [redacted]"),
        ("my password is hunter2go, thanks", "my password is [redacted], thanks"),
        ("The passphrase was: 'Tr0ub4dor&3'.", "The passphrase was: '[redacted]'."),
    ],
)
def test_a_password_that_its_program_or_its_decoding_gives_away_is_taken_out(text: str, kept: str) -> None:
    assert without_secrets(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "mysql -p shop",
        "the password is required, and the password is `short`",
        "mysql -e 'select 1' && mkdir -pv src/parts",
        "docker run --name mysql -p3306:3306 mysql",
        "ssh -p 2222 box",
        "mkdir -p src/parts",
        "grep -a needle hay",
        "use --password together with care",
        "mysql --password PASSWORD -u USER",
        "tool -u me -p $PASSWORD",
        "redis-cli -a <password> ping",
        "ffmpeg -pass 1234 -i x",
        "basic authentication, and Basic understanding",
        "Basic AAAAAAAAAAAAAAAA",
    ],
)
def test_what_merely_looks_like_a_password_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_the_word_behind_a_flag_for_a_password_is_known_as_one() -> None:
    flags = ["--pass", "--db-pass", "--password", "-pass", "--bypass"]
    assert [is_secret_flag(flag) for flag in flags] == [True, True, True, False, False]
