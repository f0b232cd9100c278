"""The figures as one picture: an SVG, written by hand, readable on light and on dark pages."""

from html import escape

from ._meter import FRESH, READ, WRITE, Bill
from ._outcome import LIMITS, Outcome
from ._policies import OURS

__all__ = ["draw"]

_WIDTH, _LEFT, _RIGHT = 760, 168, 92
_BAR, _STEP, _HEAD, _TOP = 16, 22, 30, 64
_PARTS = (
    ("read", "read from the cache", READ),
    ("again", "written again, behind a change", WRITE),
    ("new", "new, written once", WRITE),
    ("asked", "summaries", FRESH),
)
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.head, .ours { font-weight: 600; }
.small { font-size: 12px; fill: #59636e; }
.read { fill: #4a8fe0; } .again { fill: #e07b39; } .new { fill: #9aa4af; } .asked { fill: #8b6cc9; }
.axis { stroke: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .small { fill: #9198a1; }
  .new { fill: #6e7781; }
}"""


def draw(outcome: Outcome) -> str:
    """Return the picture: a bar for each policy at each limit, made of what its cost is made of."""
    names = outcome.names
    most = max(bill.cost for bill in outcome.bills.values())
    per = (_WIDTH - _LEFT - _RIGHT) / most
    drawn = [_legend(outcome)]
    top = _TOP
    for limit in LIMITS:
        drawn.append(_text(0, top + 12, f"Limit of {limit:,} tokens", "head"))
        top += _HEAD
        bottom = top + _STEP * len(names) - (_STEP - _BAR) + 3
        for name in names:
            drawn += _bar(name, outcome.bills[name, limit], top, per)
            top += _STEP
        drawn.append(f'<path class="axis" d="M{_LEFT} {bottom - _STEP * len(names) + 1}V{bottom}"/>')
        top += 12
    title = "Cost of the replayed runs under each policy, at three limits"
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}" '
        f'role="img" aria-labelledby="title">\n<title id="title">{title}</title>\n<style>\n{_STYLE}\n</style>\n'
        f"{body}\n</svg>\n"
    )


def _legend(outcome: Outcome) -> str:
    said = f"Cost in thousands of tokens at full price: {outcome.runs} runs, {outcome.requests:,} requests"
    drawn = [_text(0, 14, said, "head")]
    left = 0.0
    for kind, words, price in _PARTS:
        drawn.append(f'<rect class="{kind}" x="{left:g}" y="28" width="12" height="12"/>')
        drawn.append(_text(left + 18, 39, f"{words} (x {price:g})", "small"))
        left += 36 + 6.2 * len(f"{words} (x {price:g})")
    return "\n".join(drawn)


def _bar(name: str, bill: Bill, top: float, per: float) -> list[str]:
    drawn = [_text(_LEFT - 8, top + 12.5, name, "ours" if name == OURS else "", 'text-anchor="end"')]
    left = float(_LEFT)
    for (kind, _, price), tokens in zip(_PARTS, (bill.read, bill.rewritten, bill.new, bill.summaries), strict=True):
        cost = price * tokens
        width = cost * per
        if width:
            drawn.append(f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"/>')
        left += width
    drawn.append(_text(round(left + 6, 1), top + 12.5, f"{bill.cost / 1000:,.0f}k", "ours" if name == OURS else ""))
    return drawn


def _text(x: float, y: float, words: str, kind: str = "", more: str = "") -> str:
    attributes = "".join([f' class="{kind}"' if kind else "", f" {more}" if more else ""])
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(words)}</text>'
