"""What looks like a secret in a text, and the names under which secrets stand.

Every pattern begins where a run of its characters begins and gives nothing back (`++`), or is bounded, so that no text
takes more than a few passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.sessions.lines.assigned import REDACTED
from harness.sessions.lines.logins import without_logins
from harness.sessions.lines.paired import without_encoded_login, without_hooks, without_paired, without_web_logins
from harness.sessions.lines.well_known import KEYS, may_have_names, without_assigned

__all__ = ["REDACTED", "is_secret_flag", "may_name_secrets", "without_password", "without_secrets"]

_SHAPES = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
      (?:sk|rk)[-_](?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{16,}+  # OpenAI, Anthropic, Stripe and others
    | gh[opsur]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+
    | glpat-[A-Za-z0-9_-]{16,}+
    | xox[abeoprs]-[A-Za-z0-9-]{10,}+                  # Slack
    | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])         # AWS
    | AIza[A-Za-z0-9_-]{35} | ya29\.[A-Za-z0-9_-]{20,}+  # Google
    | (?:gsk|nvapi|xai|pplx|tvly|dop_v1|sntry[su]|r8)[_-](?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,}+  # models, clouds
    | (?:dckr_pat|shp(?:at|ca|pa|ss)|lsv2_(?:pt|sk))_[A-Za-z0-9_-]{16,}+  # Docker, Shopify, LangSmith
    | ATATT3x[A-Za-z0-9_=-]{16,}+ | hvs\.[A-Za-z0-9_-]{20,}+ | AGE-SECRET-KEY-1[A-Z0-9]{30,}+  # Vault, age
    | hf_[A-Za-z0-9]{20,}+ | npm_[A-Za-z0-9]{30,}+ | pypi-[A-Za-z0-9_-]{40,}+
    | SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+     # SendGrid
    | eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+  # JSON Web Tokens
    )""",
    re.VERBOSE,
)
_BEGINNINGS = (
    ("_", ("sk_", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "_pat_", "hf_", "npm_", "dop_v1_", "sntry", "r8_",
           "shp", "lsv2_")),
    ("-", ("sk-", "rk-", "glpat-", "xox", "pypi-", "xai-", "nvapi-", "pplx-", "tvly-", "AGE-SECRET-")),
    ("", ("AKIA", "ASIA", "AIza", "ya29.", "SG.", "hvs.", "eyJ", "ATATT3x")),
)  # fmt: skip
"""One of these, and the sign before it, is in every text with such a shape; to look for them first takes less time."""
_CRYPT = re.compile(r"(?<![\w$])\$(?:[1567y]|2[abxy]?|gy|apr1|argon2(?:id?|d)|scrypt)\$[A-Za-z0-9./$=,+-]{20,}+")
"""What is stored of passwords, as in /etc/shadow."""
_HEADER = re.compile(
    r"""(?i)(authorization(?:\\{0,8}["'])?\s{0,3}[:=]\s{0,3}(?:\\{0,8}["'])?(?:(?:bearer|basic|token|digest|api-?key|key|jwt|oauth|ssws"""
    r"""|negotiate|ntlm|splunk)\s{1,3})?|\bbearer\s{1,3})(?=[^\s"',;]{0,200}?[0-9=._-])[A-Za-z0-9._~+/=:-]{8,}+"""
)
# `Digest a="…", b=…`: what its scheme is told in parts.
_PARTS = re.compile(
    r"""(?i)(authorization(?:\\{0,8}["'])?\s{0,3}[:=]\s{0,3}(?:\\{0,8}["'])?[a-z][\w-]{1,30}\s{1,3})"""
    r"""(?:[\w-]{1,40}\s{0,2}=\s{0,2}(?:\\{0,8}"[^"\\\n]{0,4000}+\\{0,8}"|[^\s,"'\\]{1,4000}+)(?:\s{0,2},\s{0,2})?+)++"""
)
_COOKIE = re.compile(
    r"""(?i)(\b(?:set-)?cookie(?:\\{0,8}["'])?\s{0,3}:\s{0,3}(?:\\{0,8}["'])?)(?=[^\s"';,=\\]{1,100}=)"""
    r"""(?:[^\n"'\\]|(?<==)\\{0,8}"[^"\\\n]{0,4000}+\\{0,8}")++"""
)
_KEY_HEADER = re.compile(
    r"""(?i)(\bx-(?:[a-z]{1,20}-){0,3}(?:key|password|secret|token)(?:\\{0,8}["'])?\s{0,3}:\s{0,3}(?:\\{0,8}["'])?)"""
    r"""(?=[^\s"',;]{0,200}?[0-9])[A-Za-z0-9._~+/=:-]{6,}+"""
)
_ADDRESS = re.compile(r"(?<=://)([^\s/:@\"']{1,100}:)[^\s/@\"']{1,200}(?=@)")
_QUERY = re.compile(
    r"""(?i)(?P<name>[?&](?:key|api_?key|sig|signature|(?:[a-z]{1,10}_)?token|passw(?:or)?d|pwd|(?:client_)?secret"""
    r"""|x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid)=)(?P<value>[^\s&"'<>#()\[\]{}\\;,]{6,}+)"""
)
_FLAGS = (
    r"--?(?:[a-z0-9]{1,20}-){0,3}"
    r"(?:(?:(?<=--)|(?<=[a-z0-9]-))pass|password|passwd|passphrase|token|secret|api-?key|access-?key|secret-?key|auth-?key)"
)
_FLAG = re.compile(
    rf"""(?i)(?<![\w-])(?P<name>{_FLAGS}(?:\s{{1,3}}|=|(?P<list>\\{{0,8}}["'],\s{{0,3}}(?=\\{{0,8}}["'])))"""
    r"""(?P<quote>(?:\\{0,8}["'])?))(?![$<\[{-])(?:(?<=["'])(?P<said>(?:(?!(?P=quote))[^\n\\]){4,400}+)(?=(?P=quote))"""
    r"""|(?P<value>[^\s"'\\,;]{4,}+))"""
)
_ELEMENT = re.compile(
    rf"(?i)(?P<name><(?:[\w-]{{1,20}}[:_.-])?(?P<kind>password|passwd|pwd|(?:client)?secret|token|{KEYS})(?:\s[^<>]{{0,100}})?>)"
    r"(?P<value>[^<>]{4,400}+)(?=</)"
)
_NETRC = re.compile(
    r"(?i)((?<!\S)(?:machine\s{1,8}\S{1,200}|default)\s{1,8}login\s{1,8}\S{1,100}\s{1,8}password\s{1,8})(?!\[redacted\])\S{1,200}"
)
_COLUMN = re.compile(
    rf"(?i)(\b(?:[a-z0-9]{{1,20}}_){{0,3}}(?:pass(?:word|wd)|secret|token|{KEYS})\t)(?=[^\s]{{0,100}}?[0-9])[^\s]{{6,}}+"
)
_PROSE = re.compile(
    r"""(?i)(\bpass(?:word|wd|phrase|code)\s{1,3}(?:is|was)(?:\s{0,3}:)?\s{1,3}["'`]?)(?!\[redacted\])"""
    r"""(?=[^\s"'`,;]{0,100}?[0-9])[^\s"'`,;]{6,}+"""
)
_DIGIT = re.compile(r"[0-9]")
_SIGN = re.compile(r"[0-9!@#%^&*+=]")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z]")
_LINE = 1000
"""Characters of a line, before a flag and behind it, in which another option is looked for."""
_SECRET_FLAG = re.compile(f"(?i){_FLAGS}")
_BEGIN, _KEY, _END = "-----BEGIN ", "PRIVATE KEY-----", "-----END "
_WORDS = ("pass", "pwd", "secret", "token", "key", "credential")
_OF_OBJECTS = (*_WORDS, "authorization", "cookie", "\\u00")
_MEMBER = re.compile(
    r"""(?:pass(?:words?|wd|phrase)?[0-9]{0,2}|pwd|secrets?|token|keys?|key_base|credentials?|authorization|cookie)\\*+"\s{0,8}:|\\u00"""
)
"""How the name of a secret ends in JSON, unless its letters hide behind escapes."""


def is_secret_flag(word: str) -> bool:
    """Whether the word behind this one on a command line is a secret."""
    return _SECRET_FLAG.fullmatch(word) is not None


def may_name_secrets(text: str) -> bool:
    """Whether a JSON text may have the name of a secret; False where that is sure not to be so."""
    low = text.lower()
    return _has_one(low, _OF_OBJECTS) and _MEMBER.search(low) is not None


def without_password(login: str) -> str:
    """`user:password` without the password."""
    user, sign, password = login.partition(":")
    return f"{user}:{REDACTED}" if sign and password else login


def without_secrets(text: str) -> str:
    """The text with `[redacted]` where it held a secret. Characters that nobody sees hide none."""
    if len(text) < 8:
        return text
    seen = text if text.isascii() else _INVISIBLE.sub("", text)
    found = _cleared(seen)
    return text if found == seen else found


def _cleared(text: str) -> str:
    if _BEGIN in text:
        text = "".join(_without_private_keys(text))
    text = _SHAPES.sub(REDACTED, text) if _may_have_a_shape(text) else text
    text = _CRYPT.sub(REDACTED, text) if "$" in text else text
    low = text.lower()
    has_auth = "auth" in low
    if (has_auth and "authorization" in low) or "bearer" in low:
        text = _PARTS.sub(rf"\1{REDACTED}", text)
        text = _HEADER.sub(rf"\1{REDACTED}", text)
    if "://" in text:
        text = without_hooks(_ADDRESS.sub(rf"\1{REDACTED}", text), low)
    text = _COOKIE.sub(rf"\1{REDACTED}", text) if "cookie" in low else text
    text = without_logins(text, low)
    text = without_web_logins(text) if has_auth else text
    text = without_encoded_login(text) if "%3a" in low else text
    text = _QUERY.sub(_query, text) if "=" in text and ("?" in text or "&" in text) else text
    return _named(text, low) if _has_one(low, _WORDS) else text


def _may_have_a_shape(text: str) -> bool:
    for sign, beginnings in _BEGINNINGS:  # noqa: SIM110 - as in `_has_one`
        if sign in text and _has_one(text, beginnings):
            return True
    return False


def _has_one(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110 - a loop makes no generator for every text that is stored
        if word in text:
            return True
    return False


def _named(text: str, low: str) -> str:
    """What stands behind the name of a secret, in whatever notation."""
    if "-" in text:
        text = _KEY_HEADER.sub(rf"\1{REDACTED}", _FLAG.sub(_flag, text))
    text = _ELEMENT.sub(_element, text) if "</" in text else text
    text = _NETRC.sub(rf"\1{REDACTED}", text) if "login" in low else text
    text = _COLUMN.sub(rf"\1{REDACTED}", text) if "\t" in text else text
    text = _PROSE.sub(rf"\1{REDACTED}", text) if " is" in low or " was" in low else text
    if not may_have_names(low):
        return text
    return without_paired(without_assigned(text) if "=" in text or ":" in text else text)


def _without_private_keys(text: str) -> Iterator[str]:
    done = 0
    while (begin := text.find(_BEGIN, done)) >= 0:
        body = text.find(_KEY, begin, begin + 60)
        if body < 0:
            yield text[done : begin + len(_BEGIN)]
            done = begin + len(_BEGIN)
            continue
        end = text.find(_END, body)
        close = text.find("-----", end + len(_END)) if end >= 0 else -1
        yield text[done:begin] + REDACTED
        if close < 0:  # cut off: what is there of the key is the rest
            return
        done = close + 5
    yield text[done:]


def _flag(found: re.Match[str]) -> str:
    """`--password X`; not where manuals say `--token TOKEN`, nor where programs define their options.

    A plain word is a password only on a line that has other options too, as a command does: prose has none.
    """
    value = found["said"] or found["value"]
    is_secret = (found["said"] and not found["list"]) or _SIGN.search(value)
    if not is_secret and "pass" in found["name"].lower() and value.islower():
        before = found.string[max(0, found.start() - _LINE) : found.start()].rpartition("\n")[2]
        behind = found.string[found.end() : found.end() + _LINE].partition("\n")[0]
        is_secret = _OPTION.search(before + behind)
    return f"{found['name']}{REDACTED}" if is_secret else found[0]


def _query(found: re.Match[str]) -> str:
    value, least = found["value"], 12 if found["name"][1:4].lower() == "key" else 6
    return f"{found['name']}{REDACTED}" if _DIGIT.search(value) and len(value) >= least else found[0]


def _element(found: re.Match[str]) -> str:
    sure = found["kind"].lower().startswith(("pass", "pwd")) or _DIGIT.search(found["value"])
    return f"{found['name']}{REDACTED}" if sure else found[0]
