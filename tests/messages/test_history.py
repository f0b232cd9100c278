"""A history is a tuple that grows at no cost, whatever grows out of it."""

import copy
import pickle
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.errors import InputError
from suture.messages import History, Message
from suture.messages.history import Log

ASK, ANSWER, THANKS = Message.user("ask"), Message.assistant("answer"), Message.user("thanks")

# One step: which of the histories so far is extended, by what, and how.
items = st.lists(st.integers(0, 9), max_size=3)
ways = st.sampled_from(["list", "tuple", "iterator", "history", "one by one", "+", "tuple +"])
steps = st.lists(st.tuples(st.integers(0, 10**6), items, ways), max_size=12)


def grown(history: History[int], new: Sequence[int], way: str) -> History[int]:
    """Return `history` with `new` behind it, or before it."""
    match way:
        case "list":
            return history.continue_with(list(new))
        case "tuple":
            return history.continue_with(tuple(new))
        case "iterator":
            return history.continue_with(iter(new))
        case "history":
            return history.continue_with(History(new))
        case "one by one":
            for item in new:
                history = history.continue_with([item])
            return history
        case "tuple +":
            return tuple(new) + history
        case _:
            return history + list(new)


@given(items, steps)
def test_a_history_behaves_as_a_tuple_whatever_grows_out_of_which(first: list[int], plan: list[tuple[int, Any, str]]):
    histories, models = [History(first)], [tuple(first)]
    for which, new, way in plan:
        at = which % len(histories)
        histories.append(grown(histories[at], new, way))
        models.append((*new, *models[at]) if way == "tuple +" else (*models[at], *new))
        assert list(map(tuple, histories)) == models
    for history, model in zip(histories, models, strict=True):
        assert (len(history), bool(history), repr(history)) == (
            len(model),
            bool(model),
            f"<History of {len(model)} message{'s' * (len(model) != 1)}>",
        )
        assert [history[at] for at in range(-len(model), len(model))] == [*model, *model]
        assert history == model
        assert history == list(model)
        assert list(reversed(history)) == [*reversed(model)]
        assert [history.count(item) for item in range(10)] == [model.count(item) for item in range(10)]
        assert [item in history for item in range(10)] == [item in model for item in range(10)]
        assert [history.index(item) for item in model] == [model.index(item) for item in model]


bounds = st.none() | st.integers(-8, 8)


@given(items, items, bounds, bounds, st.none() | st.integers(-3, 3).filter(bool))
def test_a_slice_is_the_list_that_a_tuple_would_give_while_the_log_is_longer(
    seen: list[int], unseen: list[int], start: int | None, stop: int | None, step: int | None
):
    history = History(seen)
    history.continue_with(unseen)
    assert history[start:stop:step] == seen[start:stop:step]


@given(steps)
def test_a_history_follows_just_those_that_are_its_prefix_in_the_same_log(plan: list[tuple[int, Any, str]]):
    histories = [History[int]()]
    for which, new, way in plan:
        histories.append(grown(histories[which % len(histories)], new, way))
    for one in histories:
        for other in histories:
            assert one.follows(other) == (one.log is other.log and len(one) >= len(other))
            if one.follows(other):
                assert one[: len(other)] == other


def test_growing_the_newest_shares_the_log_and_growing_an_older_one_forks_it():
    first = History([ASK])
    second = first.continue_with([ANSWER])
    fork = first.continue_with([THANKS])
    assert second.log is first.log
    assert fork.log is not first.log
    assert (first, second, fork) == ([ASK], [ASK, ANSWER], [ASK, THANKS])
    assert second.follows(first)
    assert first.follows(first)
    assert not first.follows(second)
    assert not fork.follows(first)
    assert not first.follows([ASK])


def test_what_is_known_of_a_log_is_shared_by_its_histories_and_left_behind_by_a_fork():
    first = History([ASK])
    first.log.memo["engine"] = 1
    assert first.continue_with([ANSWER]).log.memo == {"engine": 1}
    assert first.continue_with([THANKS]).log.memo == {}
    assert first.continue_with([THANKS, ASK]).log.memo == {}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda history: pickle.loads(pickle.dumps(history))])
def test_a_copy_of_a_history_has_its_messages_and_nothing_that_is_known_of_them(duplicate: Callable[[Any], Any]):
    history = History([ASK]).continue_with([ANSWER])
    history.log.memo["engine"] = threading.Lock()
    duplicated = duplicate(history)
    assert duplicated == history
    assert duplicated.log.memo == {}


def test_several_messages_fork_an_older_history_too():
    first = History([ASK])
    second = first.continue_with([ANSWER, THANKS])
    assert first.continue_with([THANKS, ASK]) == [ASK, THANKS, ASK]
    assert second == [ASK, ANSWER, THANKS]


def test_the_list_a_history_is_made_of_stays_the_callers():
    messages = [ASK]
    history = History(messages)
    messages.append(ANSWER)
    assert history == [ASK]
    history.continue_with([THANKS])
    assert messages == [ASK, ANSWER]


def test_an_iterator_ends_where_the_history_does_even_if_the_log_grows_meanwhile():
    history = History([1, 2])
    seen: list[int] = []
    newest = history
    for item in history:
        seen.append(item)
        newest = newest.continue_with([item])
    assert seen == [1, 2]
    assert newest == [1, 2, 1, 2]


@pytest.mark.parametrize("length", range(4))
def test_a_history_can_be_extended_by_itself_and_by_its_log(length: int):
    history = History(range(length))
    assert history.continue_with(history) == [*range(length)] * 2
    fresh = History(range(length))
    assert fresh.continue_with(fresh.log) == [*range(length)] * 2


def test_an_iterator_that_fails_midway_leaves_nothing_behind():
    history = History([ASK])

    def failing() -> Iterable[Message]:
        yield ANSWER
        raise InterruptedError

    with pytest.raises(InterruptedError):
        history.continue_with(failing())
    assert history.continue_with([THANKS]) == [ASK, THANKS]


def test_an_iterator_that_extends_the_same_history_meanwhile_gets_nothing_mixed_up():
    history = History([1])
    inside: list[History[int]] = []

    def meddling() -> Iterable[int]:
        inside.append(history.continue_with([7]))
        yield 2
        yield 3

    assert history.continue_with(meddling()) == [1, 2, 3]
    assert inside == [[1, 7]]


class Contended(Log[int]):
    """A log into which another thread always gets its item first."""

    def append(self, item: int) -> None:
        super().append(99)
        super().append(item)

    def extend(self, new: Iterable[int]) -> None:
        super().append(99)
        super().extend(new)


@pytest.mark.parametrize("new", [[2], (2,), [2, 3], [2, 99], [99, 99]])
def test_who_comes_second_in_a_race_for_the_log_forks(new: Sequence[int]):
    history = History([1])
    history.log = Contended([1])
    assert history.continue_with(new) == [1, *new]
    assert history == [1]


def test_threads_that_extend_one_history_each_get_their_own():
    base = History(range(10))
    made: dict[int, History[int]] = {}

    def grow(number: int) -> None:
        for _ in range(200):
            made[number] = base
            for _ in range(20):
                made[number] = made[number].continue_with([number]).continue_with([number, number])

    threads = [threading.Thread(target=grow, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == {number: [*range(10), *[number] * 60] for number in range(4)}


@pytest.mark.parametrize("fixed", [History([ASK]), suture.Repairer([ASK]).messages])
def test_what_does_not_change_says_so_to_whoever_tries_and_what_to_do_instead(fixed: Any):
    reason = "make a longer list" if type(fixed).__name__ == "History" else "this is a view of a repairer's messages"
    for method in set(dir(list)) - set(dir(Sequence)):
        if not method.startswith("_") and method != "copy":
            with pytest.raises(AttributeError, match=reason):
                getattr(fixed, method)
            assert not hasattr(fixed, method)
    with pytest.raises(TypeError, match=reason):
        fixed[0] = THANKS
    with pytest.raises(TypeError, match=reason):
        del fixed[0]
    with pytest.raises(AttributeError, match="has no attribute 'copy'"):
        fixed.copy()
    assert list(fixed) == [ASK]


@pytest.mark.parametrize("index", [2, -3, 10**30])
def test_an_index_past_the_length_is_an_error_even_where_the_log_goes_on(index: int):
    history = History([1, 2])
    history.continue_with([3, 4])
    with pytest.raises(IndexError, match=f"no message {index} in a history of 2"):
        history[index]


def test_an_index_is_an_integer():
    with pytest.raises(TypeError):
        History([1])["0"]  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_a_history_equals_lists_tuples_and_histories_and_nothing_else():
    history = History([1, 2])
    assert history == [1, 2]
    assert history == (1, 2)
    assert [1, 2] == history  # noqa: SIM300 - the other way round is another method
    assert history == History([1, 2])
    assert history != [1]
    assert history != [1, 3]
    assert history != History([1, 3])
    assert history != History([1])
    assert history != {1, 2}
    assert history != "12"


def test_a_history_has_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(History())


def test_a_history_has_no_room_for_more_attributes():
    with pytest.raises(AttributeError):
        History().seen = True  # pyright: ignore[reportAttributeAccessIssue]


def test_what_is_a_history_already_is_not_copied():
    history = History([ASK])
    assert History.of(history) is history
    assert History.of([ASK]) == history
    assert History.of([ASK]).log is not history.log


@pytest.mark.parametrize("one", ["text", b"text", {"role": "user"}, ASK, None, 7])
def test_one_message_or_a_text_is_refused_where_several_are_wanted(one: Any):
    with pytest.raises(InputError, match=f"expected a list of messages, found one {type(one).__name__}"):
        History(one)
    with pytest.raises(InputError, match=f"expected a list of messages, found one {type(one).__name__}"):
        History([ASK]).continue_with(one)
    with pytest.raises(TypeError):
        _ = History([ASK]) + one
    with pytest.raises(TypeError):
        _ = one + History([ASK])


def test_a_history_is_checked_and_repaired_as_the_list_it_equals():
    call = suture.ToolCall("call_1", "search", "{}")
    broken = [ASK, Message.assistant(tool_calls=[call]), THANKS]
    history = History(broken)
    history.continue_with([ANSWER])
    assert suture.check(history) == suture.check(broken)
    assert list(suture.repair(history).messages) == list(suture.repair(broken).messages)
