"""What a docstring says about a tool and its parameters."""

import subprocess
import sys
from typing import Any

import pytest

from suture.tools import tool
from suture.tools.signature import read_docstring


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        (None, "", {}),
        ("", "", {}),
        ("Search.", "Search.", {}),
        ("\n    Search\n    the docs.\n\n    All of them.\n    ", "Search\nthe docs.\n\nAll of them.", {}),
        ("Args:\n    a: One.", "", {"a": "One."}),
        ("Search.\n\nArgs:\n    a: One.\n    b (int, optional): Two.\n", "Search.", {"a": "One.", "b": "Two."}),
        (
            "Search.\n\nArguments:\n  a: One:\n     more: of it.\n\n  b: Two.",
            "Search.",
            {"a": "One: more: of it.", "b": "Two."},
        ),
        ("Args:\n    a: One.\n    b (array of shape (n, m)): Two.\n", "", {"a": "One.", "b": "Two."}),
        ("Search.\n\nParameters:\n    a:\n        One.\n", "Search.", {"a": "One."}),
        ("Search.\n\nArgs:\n    *a: One.\n    **b: Two.", "Search.", {"a": "One.", "b": "Two."}),
        ("Search.\n\nArgs:\n    a: One.\n\nReturns:\n    b: Two.", "Search.", {"a": "One."}),
        ("Search.\n\nReturns:\n    b: Two.\n\nArgs:\n    a: One.", "Search.", {"a": "One."}),
        ("Search.\n\nReturns:\n    Pages.", "Search.", {}),
        ("Search.\n\n>>> search('a')\n'b'\n", "Search.", {}),
        ("Search.\n\nWhen: always.\nWhere:\n    here", "Search.\n\nWhen: always.\nWhere:\n    here", {}),
        (
            "Search.\n\n:param a: One,\n    and more.\n:param int b: Two.\n:returns: Pages.",
            "Search.",
            {"a": "One, and more.", "b": "Two."},
        ),
        ("Search.\n\n:return: Pages\n    of text.\n:raises ValueError: never", "Search.", {}),
        ("Args:\n    not an entry\n    a: One.", "", {"a": "One."}),
        ("Args:\n    a: One.\nEnd of it.\n    b: Two.", "", {"a": "One."}),
        ("Suche.\n\nArgs:\n    größe: Wie groß.", "Suche.", {"größe": "Wie groß."}),
    ],
)
def test_a_docstring_is_read_as_its_writer_meant_it(text, description, parameters):
    assert read_docstring(text) == (description, parameters)


NUMPY = """Get the forecast.

    Of one city.

    Parameters
    ----------
    city : str
        Name of the city,
        as it is written there.

        More of it.
    days, hours : int, optional
        How long: in all.
    *names
        Others.
    unit : {'c', 'f'}

    Other Parameters
    ----------------
    exact : bool, default: False
        Whether to round.

    Returns
    -------
    report : str
        The forecast.

    Examples
    --------
    >>> forecast("Rome")
    """


def test_a_docstring_in_numpys_style_describes_the_parameters():
    assert read_docstring(NUMPY) == (
        "Get the forecast.\n\nOf one city.",
        {
            "city": "Name of the city, as it is written there. More of it.",
            "days": "How long: in all.",
            "hours": "How long: in all.",
            "names": "Others.",
            "unit": "",
            "exact": "Whether to round.",
        },
    )


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        ("Parameters\n    ----------\n    a : int\n        One.", "", {"a": "One."}),
        ("Get it.\n\nReturns\n-------\nstr\n    b : Two.", "Get it.", {}),
        ("Get it.\n\nParameters\n----------\na\n    One.\n", "Get it.", {"a": "One."}),
        ("Get it.\n\nParameters\nof the call.", "Get it.\n\nParameters\nof the call.", {}),
        ("Title\n-----\n\nGet it.", "Title\n-----\n\nGet it.", {}),
        ("Get it.\n\nParameters\n----------", "Get it.", {}),
    ],
)
def test_a_line_below_a_title_makes_a_section_of_what_is_known(text, description, parameters):
    assert read_docstring(text) == (description, parameters)


def test_what_numpys_style_says_reaches_the_schema():
    def forecast(city: str, days: int = 3) -> str: ...

    forecast.__doc__ = NUMPY
    parameters: Any = tool(forecast).info.parameters
    assert [each["description"] for each in parameters["properties"].values()] == [
        "Name of the city, as it is written there. More of it.",
        "How long: in all.",
    ]


STRIPPED = """
import warnings
from typing import Annotated
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from suture import tool
    from suture.middleware.reading_tools import reading_tools

    @tool(description="Look up the tides.")
    def tides(port: Annotated[str, "Which port."]) -> str: ...

    own = reading_tools(lambda: ..., lambda name: None, "read_file", 1000)
    print([str(each.message) for each in told])
    for name in ("first", "second"):
        @tool(name=name)
        def lost(port: str) -> str:
            '''Do something.'''
    print([str(each.message) for each in told])
print(tides.info.description, tides.info.parameters["properties"]["port"]["description"])
print([bool(each.info.description) for each in own])
"""


@pytest.mark.parametrize("options", [["-OO"], []])
def test_without_docstrings_one_warning_says_what_to_write_instead(options: list[str]):
    done = subprocess.run([sys.executable, *options, "-c", STRIPPED], capture_output=True, text=True, check=True)
    lost, advice = "python -OO removes docstrings", "write @tool(description='…') and Annotated[str, '…'], or run"
    before, after, *rest = done.stdout.splitlines()
    assert before == "[]"
    assert (after.count(lost), after.count(advice)) == ((1, 1) if options else (0, 0))
    assert rest == ["Look up the tides. Which port.", "[True, True, True]"]
