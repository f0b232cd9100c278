"""What a block of a message can be, on any wire."""

__all__ = ["CALL", "MEDIA", "OTHER", "RESULT", "TEXT", "THINKING"]

CALL, RESULT, TEXT, THINKING, MEDIA, OTHER = "call", "result", "text", "thinking", "media", "other"
