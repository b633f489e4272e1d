"""Sessions of any format, written as something else: a page, a document, another harness's files, a bundle.

`convert` reads and writes in one go; `export` writes what was read. Both block: in an event loop,
`await in_worker(convert, path, "html")`.
"""

from harness.transcripts.export.base import Target
from harness.transcripts.export.bundle import check_bundle, is_bundle
from harness.transcripts.export.redacting import Redaction, RedactionReport, redact_transcript
from harness.transcripts.export.writing import TARGETS, Exported, WrittenFile, convert, export

__all__ = [
    "TARGETS",
    "Exported",
    "Redaction",
    "RedactionReport",
    "Target",
    "WrittenFile",
    "check_bundle",
    "convert",
    "export",
    "is_bundle",
    "redact_transcript",
]
