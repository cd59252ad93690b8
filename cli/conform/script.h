/* script.h: the text of dump.py, whose output stack_of_dump reads. */
#ifndef VLMPROF_CLI_CONFORM_SCRIPT_H
#define VLMPROF_CLI_CONFORM_SCRIPT_H

extern const char *const DUMP_PY[]; /* lines with their line ends, then NULL */

#endif
