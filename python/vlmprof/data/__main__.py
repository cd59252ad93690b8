"""python -m vlmprof.data: see vlmprof.data."""
import sys

from . import main

sys.exit(main())
