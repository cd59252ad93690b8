"""python -m vlmprof.conform: see vlmprof.conform."""
from . import main

raise SystemExit(main())
