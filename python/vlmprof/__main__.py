"""python -m vlmprof runs the program."""
import os
import sys

from .commands import program

os.execv(program(), [program(), *sys.argv[1:]])
