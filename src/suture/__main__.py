"""`python -m suture` is `suture`."""

import sys

from suture.cli.main import main

sys.exit(main())
