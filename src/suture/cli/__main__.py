"""`python -m suture.cli` is `suture`."""

import sys

from suture.cli.main import main

sys.exit(main())
