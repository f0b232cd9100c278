"""One HTML page that shows a history or a run, without build step or network, and with no script but ours.

`show_history` and `show_run` collect the data, `write_page` puts it into the page, and `serve` and `serve_store` let
a browser on this machine follow the runs in a store.
"""

from suture.viewer.page import Run, serve, serve_store, show_history, show_run, write_page

__all__ = ["Run", "serve", "serve_store", "show_history", "show_run", "write_page"]
