"""Scalars as models write them: numbers and switches in quotes, and dates, times and durations in their usual forms."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf
from typing import Any
from uuid import UUID

LABELS: dict[Any, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    bytearray: "bytes",
    Decimal: "decimal",
    UUID: "uuid",
    datetime: "datetime",
    date: "date",
    time: "time",
    timedelta: "duration",
}
"""The scalar types that msgspec reads, and their names in problems."""

FORMS: dict[Any, tuple[str, str]] = {
    datetime: ("a date and time", "2026-01-31T10:00:00Z"),
    date: ("a date", "2026-01-31"),
    time: ("a time of day", "10:00:00"),
    timedelta: ("a duration", "PT1H30M"),
}
"""What a text of these types is, and an example of it."""

_SWITCHES = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_LONGEST_NUMBER = 4000
_LAST_EXACT = 2**53  # from here on not every whole number is a float, so what was written is not known
_MILLISECONDS_FROM = 20_000_000_000  # a larger number of seconds would be after the year 2600
_CLOCK = (
    r"(?P<sign>[+-])?(?:(?P<days>\d+) ?d(?:ays?)?(?:,? ?(?=\d)|$))?"
    r"(?:(?P<hours>\d+):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?)?"
)
_DURATION = (
    r"(?i)(?P<sign>[+-])?P(?:(?P<weeks>N)W)?(?:(?P<days>N)D)?"
    r"(?:T(?=\d)(?:(?P<hours>N)H)?(?:(?P<minutes>N)M)?(?:(?P<seconds>N)S)?)?"
).replace("N", r"\d+(?:[.,]\d+)?")


def read_text(kind: Any, text: str) -> Any:
    """Read a text that has one usual form of a date, a time or a duration; raise `ValueError` for any other."""
    text = text.strip()
    if kind is datetime and len(text) > len("2026-01-31") and not re.fullmatch(_NUMBER, text):
        return _read_datetime(text)
    if kind is date:
        return date.fromisoformat(text)
    if kind is time and ":" in text:
        return time.fromisoformat(text)
    if kind is timedelta:
        return _read_duration(text)
    raise ValueError(text)


def read_leniently(kind: Any, value: Any) -> Any:
    """Read a value that stands for one of another type without loss; raise `ValueError` if it does not."""
    reader = _READERS.get(kind)
    if reader is None or type(value) not in (str, int, float, bool):
        raise ValueError(kind)
    try:
        return reader(value)
    except (ArithmeticError, InvalidOperation, OSError, TypeError) as error:
        raise ValueError(kind) from error


def _whole(value: Any) -> int:
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER:
            raise ValueError(text)
        try:
            return int(text)
        except ValueError:
            value = Decimal(text)
            if not value.is_finite() or abs(value.adjusted()) > _LONGEST_NUMBER:
                raise
    number = int(value)
    if number != value or (isinstance(value, float) and abs(value) > _LAST_EXACT):
        raise ValueError(value)
    return number


def _number(value: Any) -> float:
    number = float(value)
    if isinf(number) and "inf" not in str(value).lower():
        raise ValueError(value)
    return number


def _switch(value: Any) -> bool:
    if isinstance(value, str):
        value = _SWITCHES.get(value.strip().lower())
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _decimal(value: Any) -> Decimal:
    number = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    if not number.is_finite():
        raise ValueError(value)
    return number


def _seconds(value: Any) -> int | float | None:
    """Return a number of seconds, also in quotes; `None` for any other text."""
    if isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - as for any other value that is no number of seconds
    if isinstance(value, str):
        # Eight digits are a date without dashes.
        if len(value) == len("20260131") or not re.fullmatch(_NUMBER, value):
            return None
        value = float(value) if "." in value else int(value)
    if not isfinite(value):
        raise ValueError(value)
    return value


def _read_datetime(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("_", "T", 1))


def _moment(value: Any) -> datetime:
    seconds = _seconds(value.strip() if isinstance(value, str) else value)
    if seconds is None:
        return _read_datetime(value.strip())
    if abs(seconds) > _MILLISECONDS_FROM:
        seconds /= 1000
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _day(value: Any) -> date:
    moment = _moment(value)
    if moment.time() != time():
        raise ValueError(value)
    return moment.date()


def _time(value: Any) -> time:
    seconds = _seconds(value)
    span = None if seconds is None else timedelta(seconds=seconds)  # it rounds, perhaps to the next day
    if span is None or not timedelta() <= span < timedelta(days=1):
        raise ValueError(value)
    return (datetime(1970, 1, 1, tzinfo=UTC) + span).timetz()


def _span(value: Any) -> timedelta:
    seconds = _seconds(value.strip() if isinstance(value, str) else value)
    if seconds is None:
        raise ValueError(value)
    return timedelta(seconds=seconds)


def _read_duration(text: str) -> timedelta:
    match = re.fullmatch(_DURATION, text) or re.fullmatch(_CLOCK, text)
    parts = {unit: part for unit, part in match.groupdict().items() if part} if match else {}
    sign = parts.pop("sign", "+")
    if not parts:
        raise ValueError(text)
    try:
        span = timedelta(**{unit: float(part.replace(",", ".")) for unit, part in parts.items()})
        return -span if sign == "-" else span
    except OverflowError as error:
        raise ValueError(text) from error


_READERS: dict[Any, Callable[[Any], Any]] = {
    int: _whole,
    float: _number,
    bool: _switch,
    Decimal: _decimal,
    UUID: lambda value: UUID(str(value).strip()),
    datetime: _moment,
    date: _day,
    time: _time,
    timedelta: _span,
}
