"""A boundary that only makes the open turn shorter hides what was hidden before, however the file is read."""

from harness.sessions import SessionTree


def said(role: str, message_id: str, text: str) -> dict:
    return {"id": message_id, "role": role, "content": [{"type": "text", "text": text}]}


async def test_reading_everything_and_reading_from_the_anchor_show_the_same(tmp_path):
    def tree() -> SessionTree:
        return SessionTree(tmp_path, "s", agent="a", namespace=())

    async with tree().writing() as writer:
        for number in (1, 2):
            writer.add_message(said("user", f"u{number}", "asked"), via="user")
            writer.add_message(said("assistant", f"a{number}", "answered"), via="repair")
        first, second = writer.view().turns
        writer.append_compaction("both turns", first.id, second.id, None, None)
        writer.add_message(said("user", "u3", "asked"), via="user")
        writer.append_compaction("both turns, and steps", "", "", None, None, keeps_open_turn=True)
    warm = (await tree().load()).messages
    (tmp_path / "s.head.json").unlink()
    assert (await tree().load()).messages == warm
    assert [message["id"] for message in warm][1:] == ["u3"]
