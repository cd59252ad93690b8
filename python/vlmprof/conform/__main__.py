"""python -m vlmprof.conform: see vlmprof.conform."""
import sys

from . import main

sys.exit(main())
