"""python -m vlmprof.data: see vlmprof.data."""
from . import main

raise SystemExit(main())
