"""One HTML page that shows a history or a run, without a build or a network; only its own script can run in it.

`show_history` and `show_run` collect what the page shows as plain data, `write_page` puts the data into the page, and
`serve` and `serve_store` let a browser on this machine follow a store while its runs go on.
"""

from suture.viewer.page import Run, serve, serve_store, show_history, show_run, write_page

__all__ = ["Run", "serve", "serve_store", "show_history", "show_run", "write_page"]
