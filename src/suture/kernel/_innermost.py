"""What stands directly around a model: fit to its profile, and callbacks."""

from asyncio import CancelledError
from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from suture.kernel._awaiting import close
from suture.kernel._model import Model, ModelRequest, ModelWrapper, name_of
from suture.kernel._policies import Callbacks, Component
from suture.kernel._scope import Scope
from suture.kernel._telling import tell
from suture.messages import Delta, History

__all__ = ["Innermost"]


class Innermost(ModelWrapper[Any]):
    """The model as wrappers see it: it is sent what its provider accepts."""

    def __init__(self, inner: Model[Any], scope: Scope) -> None:
        super().__init__(inner)
        self.scope = scope
        callbacks = scope.spec.callbacks
        self._told = callbacks if callbacks is not None and "model" in callbacks.kinds else None

    def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Ask the model, with what its provider accepts."""
        request = self._fitted(request)
        return self.inner.stream(request) if self._told is None else self._tell_of(request, self._told)

    async def _tell_of(self, request: ModelRequest[Any], told: Callbacks) -> AsyncIterator[Any]:
        about = Component(kind="model", name=name_of(self.inner))
        await tell(told, "on_start", about, request)
        held: Any = None
        stream = self.inner.stream(request)
        try:
            async for item in stream:
                if isinstance(item, Delta):
                    yield item
                    continue
                if held is not None:
                    yield held
                held = item
        except (GeneratorExit, CancelledError):
            await close(stream)
            raise
        except Exception as error:
            await close(stream)
            if held is not None:
                yield held
            await tell(told, "on_error", about, error)
            raise
        await tell(told, "on_end", about, held)
        if held is not None:
            yield held

    def _fitted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        scope, model = self.scope, self.inner
        fit = scope.fits.get(id(model))
        if fit is None:
            fit = scope.fits[id(model)] = scope.spec.fit(model, scope.language)
        messages = fit(History.of(request.messages))
        return request if messages is request.messages else replace(request, messages=messages)
