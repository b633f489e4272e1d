"""Long-term memory of one tenant: its files, and what is needed to show them to a model and add to them."""

from harness.memory.budget import both_ends, within_budget
from harness.memory.clearing import clear_memory_paths
from harness.memory.consolidation import checked_memory, consolidation_prompt
from harness.memory.conversation import conversation_text
from harness.memory.extraction import NOTHING, ExtractionPrompt, extraction_prompt, parse_extraction
from harness.memory.fence import RESERVED_TAGS, fence, tag_name
from harness.memory.files import ARCHIVE_FOLDER, DAILY_FOLDER, MEMORY_FILE, MemoryFiles, daily_path
from harness.memory.maintenance import MaintenanceConfig, maintain
from harness.memory.watermark import WATERMARK_FILE

__all__ = [
    "ARCHIVE_FOLDER",
    "DAILY_FOLDER",
    "MEMORY_FILE",
    "NOTHING",
    "RESERVED_TAGS",
    "WATERMARK_FILE",
    "ExtractionPrompt",
    "MaintenanceConfig",
    "MemoryFiles",
    "both_ends",
    "checked_memory",
    "clear_memory_paths",
    "consolidation_prompt",
    "conversation_text",
    "daily_path",
    "extraction_prompt",
    "fence",
    "maintain",
    "parse_extraction",
    "tag_name",
    "within_budget",
]
