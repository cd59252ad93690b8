"""python -m vlmprof: the program."""
import os
import sys

from .commands import program

path = program()
os.execv(path, [path, *sys.argv[1:]])
