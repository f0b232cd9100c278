"""One HTML page on which a history or a run can be looked at: no build, no network, nothing in it that runs but ours.

`show_history` and `show_run` gather what there is to see as plain data, `write_page` puts data into the page, and
`serve` and `serve_store` let a browser on this machine follow a store while its runs go on.
"""

from suture.viewer.page import Run, serve, serve_store, show_history, show_run, write_page

__all__ = ["Run", "serve", "serve_store", "show_history", "show_run", "write_page"]
