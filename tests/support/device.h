/* device.h: devices for tests of outputs. A test makes its own devices if it may, so that a bug cannot replace the machine's. If it may neither do that nor write to
 * /dev, it uses the machine's. Include it after folder.h. */
#ifndef DEVICE_H
#define DEVICE_H
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The path of "null" or "full"; NULL if there is none to write to. Unlink it at the end. */
static inline const char *device(const char *name) {
    static char paths[2][300];
    char *path = paths[*name == 'f'];
    int file;
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    if (mknod(path, S_IFCHR | 0666, makedev(1, *name == 'f' ? 7 : 3)) == 0) {
        if ((file = open(path, O_WRONLY)) >= 0) { close(file); return path; }
        unlink(path);
    }
    if (access("/dev", W_OK) == 0) return NULL;
    snprintf(path, sizeof paths[0], "/dev/%s", name);
    return access(path, W_OK) == 0 ? path : NULL;
}
#endif
