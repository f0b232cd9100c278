"""What `ToolReduction` is made with, for those who reduce elsewhere."""

from suture.middleware._clearing import Question, Reduced, judge, reduce_history
from suture.middleware._notebook import Notebook
from suture.middleware._reading import reading_tools
from suture.middleware._truncating import Truncating

__all__ = ["Notebook", "Question", "Reduced", "Truncating", "judge", "reading_tools", "reduce_history"]
