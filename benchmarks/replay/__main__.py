"""Print what the replay comes to; with `--write`, put it into the page and the picture in docs/."""

import argparse
import sys
import time

from ._corpus import corpus_file, read_corpus
from ._outcome import replay_all
from ._page import PAGE, PICTURE, filled
from ._picture import draw
from ._summaries import peers
from ._tables import caches_table, costs_table, rivals_table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables and the picture into docs/")
    given = parser.parse_args()
    file = corpus_file()
    if file is None:
        print("the corpus is not on this machine; SUTURE_CORPUS says where it is", file=sys.stderr)
        return 2
    start = time.perf_counter()
    with peers() as others:
        outcome = replay_all(read_corpus(file), others)
    for table in (costs_table(outcome), caches_table(outcome), rivals_table(outcome)):
        print(*table.lines(), "", sep="\n")
    print(f"{outcome.runs} runs, {outcome.requests:,} requests, in {time.perf_counter() - start:.0f} s")
    if given.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), outcome), encoding="utf-8")
        PICTURE.write_text(draw(outcome), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
