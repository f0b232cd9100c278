"""`python -m suture.cli` is `suture`."""

import sys

from suture.cli._main import main

sys.exit(main())
