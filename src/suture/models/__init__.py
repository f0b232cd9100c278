"""What a model is: the interface that an agent speaks to."""

from suture.kernel import Model, ModelRequest, ModelWrapper, closing
from suture.messages import Delta

__all__ = ["Delta", "Model", "ModelRequest", "ModelWrapper", "closing"]
