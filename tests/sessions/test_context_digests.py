"""The digest of a context, made from what the request before it has in common with this one."""

from hypothesis import given
from hypothesis import strategies as st

from harness.messages import MessageDict
from harness.sessions.lines.digest import ContextDigests, context_digest, message_digest

MESSAGES: list[MessageDict] = [{"id": f"m-{number}", "role": "user", "content": []} for number in range(6)]
REQUESTS = st.lists(st.tuples(st.sampled_from(["one binding", "another"]), st.lists(st.sampled_from(MESSAGES))))


@given(REQUESTS)
def test_it_is_that_of_the_binding_and_the_messages_whatever_was_asked_before(
    requests: list[tuple[str, list[MessageDict]]],
) -> None:
    digests = ContextDigests()
    for binding, messages in requests:
        assert digests.of(binding, messages) == context_digest(binding, map(message_digest, messages))


def test_a_message_that_was_put_in_the_place_of_an_equal_one_is_told_from_it() -> None:
    digests = ContextDigests()
    one, true = {"id": "m", "meta": {"n": 1}}, {"id": "m", "meta": {"n": True}}
    digests.of("binding", [one, MESSAGES[0]])
    assert digests.of("binding", [true, MESSAGES[0]]) == context_digest(
        "binding", [message_digest(true), message_digest(MESSAGES[0])]
    )
