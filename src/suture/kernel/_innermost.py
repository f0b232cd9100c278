"""What stands directly around a model: fit to its profile, callbacks, and one form for whatever it streams."""

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from suture.errors import InputError
from suture.kernel._awaiting import close, settled
from suture.kernel._model import Model, ModelRequest, ModelWrapper, name_of
from suture.kernel._policies import Component
from suture.kernel._scope import Scope
from suture.messages import Delta, History

__all__ = ["Innermost"]


class Innermost(ModelWrapper[Any]):
    """The model as wrappers see it: it is sent what its provider accepts, and yields `Delta`s, then one message."""

    def __init__(self, inner: Model[Any], scope: Scope) -> None:
        super().__init__(inner)
        self.scope = scope
        callbacks = scope.spec.callbacks
        self._told = callbacks if callbacks is not None and "model" in callbacks.kinds else None

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Ask the model. Of the messages it yields the last is the whole one; earlier ones are pieces."""
        request = self._fitted(request)
        wire, told = self.scope.wire, self._told
        if told is not None:
            await self._tell(told.on_start, request)
        held: Any = None
        stream = self.inner.stream(request)
        try:
            async for item in stream:
                if isinstance(item, Delta):
                    yield item
                    continue
                for delta in () if held is None else wire.deltas(held):
                    yield delta
                held = item
        except GeneratorExit:
            await close(stream)
            raise
        except Exception as error:
            await close(stream)
            for delta in () if held is None else wire.deltas(held):
                yield delta
            if told is not None:
                await self._tell(told.on_error, error)
            raise
        if told is not None:
            await self._tell(told.on_end, held)
        if held is not None:
            if not wire.is_reply(held):
                raise InputError(f"a model's reply is an assistant message of the {wire.name} wire")
            yield held

    def _fitted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        scope, model = self.scope, self.inner
        fit = scope.fits.get(id(model))
        if fit is None:
            fit = scope.fits[id(model)] = scope.spec.fit(model, scope.language)
        messages = fit(History.of(request.messages))
        return request if messages is request.messages else replace(request, messages=messages)

    async def _tell(self, function: Any, value: Any) -> None:
        if function is not None:
            await settled(function(Component(kind="model", name=name_of(self.inner)), value))
