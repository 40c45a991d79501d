"""python -m cuewise."""

import sys

from cuewise.cli import main

sys.exit(main())
