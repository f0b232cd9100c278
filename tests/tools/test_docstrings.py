"""What a docstring says about a tool and its parameters."""

import pytest

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
