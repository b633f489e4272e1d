"""Sessions of other harnesses, read into this library's messages.

`read` gives a whole session, `page` a window of it, `discover` and `candidates` what there is. All of
them block while they read: in an event loop, `await in_worker(read, path)`.
"""

from harness.transcripts.discovery import discover
from harness.transcripts.head import Head
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.listing import Candidate, candidates
from harness.transcripts.media import media
from harness.transcripts.pages import Page, join
from harness.transcripts.pieces import Subagent
from harness.transcripts.reader import Summary, Transcript, read, summary
from harness.transcripts.search import Found, Hit, find
from harness.transcripts.stitching import stitched
from harness.transcripts.touched import files_touched
from harness.transcripts.turns import Turn
from harness.transcripts.windows import page
from harness.transcripts.worker import in_worker

__all__ = [
    "Candidate",
    "Found",
    "Head",
    "Hit",
    "Page",
    "Subagent",
    "Summary",
    "Transcript",
    "TranscriptWarning",
    "Turn",
    "candidates",
    "discover",
    "files_touched",
    "find",
    "in_worker",
    "join",
    "media",
    "page",
    "read",
    "stitched",
    "summary",
]
