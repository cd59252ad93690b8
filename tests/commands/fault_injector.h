/* fault_injector.h: the kinds of calls that fault_injector.c makes fail, and what it leaves in its file. */
#ifndef FAULT_INJECTOR_H
#define FAULT_INJECTOR_H
#include <stdatomic.h>

enum {
    INJECT_MEMORY,      /* malloc and its kin: ENOMEM */
    INJECT_MAP,         /* mmap: ENOMEM */
    INJECT_OPEN_INPUT,  /* open for reading, opendir: EIO */
    INJECT_OPEN_OUTPUT, /* open for writing, mkdir: EIO, ENOSPC */
    INJECT_READ,        /* read, pread, readdir, fread, getline: EIO */
    INJECT_WRITE,       /* write, pwrite, ftruncate: ENOSPC */
    INJECT_SYNC,        /* fsync: EIO */
    INJECT_RENAME,      /* rename: EIO */
    INJECT_KINDS
};
struct injected {
    atomic_long calls[INJECT_KINDS]; /* counted from main on */
    atomic_long failed;              /* 1 if the call that was to fail came */
};
#endif
