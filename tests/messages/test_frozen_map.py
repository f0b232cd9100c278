import copy
import pickle

import msgspec
import pytest

from suture.messages import FrozenMap


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("b", 2),
        lambda m: m.__delitem__("a"),
        lambda m: m.__ior__({"b": 2}),
        lambda m: m.clear(),
        lambda m: m.pop("a"),
        lambda m: m.pop("absent", None),
        lambda m: m.popitem(),
        lambda m: m.setdefault("a", 1),
        lambda m: m.setdefault("b", 2),
        lambda m: m.update(b=2),
        lambda m: m.update({}),
    ],
)
def test_every_way_of_changing_a_frozen_map_is_refused(change):
    frozen = FrozenMap(a=1)
    with pytest.raises(TypeError, match="cannot be changed"):
        change(frozen)
    assert frozen == {"a": 1}


def test_joining_in_place_is_refused_and_leaves_the_name_as_it_was():
    frozen = same = FrozenMap(a=1)
    with pytest.raises(TypeError):
        frozen |= {"b": 2}
    assert frozen is same
    assert frozen == {"a": 1}


def test_a_frozen_map_equals_a_plain_dict_and_joins_into_one():
    frozen = FrozenMap({"a": 1})
    assert frozen == {"a": 1}
    assert frozen != {"a": 2}
    assert {**frozen, "b": 2} == {"a": 1, "b": 2}
    assert type(frozen.copy()) is dict


def test_a_frozen_map_is_encoded_as_the_dict_it_is():
    assert msgspec.json.encode(FrozenMap({"a": FrozenMap(b=1)})) == b'{"a":{"b":1}}'


def test_a_frozen_map_survives_pickling_at_every_protocol():
    frozen = FrozenMap({"a": [1, FrozenMap(b=2)]})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(frozen, protocol))
        assert twin == frozen
        assert type(twin) is type(twin["a"][1]) is FrozenMap


def test_a_shallow_copy_is_the_same_map_and_a_deep_one_shares_nothing_that_can_change():
    frozen = FrozenMap({"a": [1]})
    assert copy.copy(frozen) is frozen
    twin = copy.deepcopy(frozen)
    assert twin == frozen
    assert type(twin) is FrozenMap
    assert twin["a"] is not frozen["a"]
