"""Fields inside of fields, by paths such as `config.seed`."""

from typing import Any

from suture.wires.fields import map_of, object_of


def put_at(body: dict[str, Any], path: str, value: Any) -> None:
    """Put a value where a path of names leads.

    >>> body = {"config": {"seed": 3}}
    >>> put_at(body, "config.topK", 5), body
    (None, {'config': {'seed': 3, 'topK': 5}})
    """
    name, _, inside = path.partition(".")
    if not inside:
        body[name] = value
        return
    body[name] = dict(map_of(body, name))
    put_at(body[name], inside, value)


def look_at(body: Any, path: str) -> Any:
    """Return what stands where a path of names leads, `None` where nothing does.

    >>> look_at({"config": {"seed": 3}}, "config.seed"), look_at({}, "config.seed")
    (3, None)
    """
    name, _, inside = path.partition(".")
    return look_at(object_of(body, name, optional=True), inside) if inside else body.get(name)


def take_out(body: dict[str, Any], path: str) -> Any:
    """Take out what stands where a path leads, and with it the objects that held nothing else; return it.

    >>> body = {"config": {"seed": 3}, "stop": ["END"]}
    >>> take_out(body, "config.seed"), body
    (3, {'stop': ['END']})
    """
    found = look_at(body, path)
    if found is not None:
        name, _, inside = path.partition(".")
        held = dict(map_of(body, name))
        if inside:
            take_out(held, inside)
        if inside and held:
            body[name] = held
        else:
            del body[name]
    return found
