/* json_file.h: a file of JSON that a test reads. A test includes it after check.h. */
#ifndef JSON_FILE_H
#define JSON_FILE_H
#include "vlmprof_json.h"
typedef struct file_of_json { char *text; vp_json_node *nodes; vp_json json; } json_file;
static inline int json_open(const char *path, json_file *file) {
    size_t bytes, needed = 0;
    memset(file, 0, sizeof *file);
    file->text = check_read(path, &bytes);
    if (!file->text || vp_json_parse(file->text, bytes, NULL, 0, &file->json, &needed, NULL) == VP_ERR_FORMAT) return 0;
    file->nodes = (vp_json_node *)malloc((needed + 1) * sizeof *file->nodes);
    return file->nodes && vp_json_parse(file->text, bytes, file->nodes, needed, &file->json, &needed, NULL) == VP_OK;
}
static inline void json_close(json_file *file) { free(file->nodes); free(file->text); }
/* the distance of values from a part of a golden array, relative to that part's length */
static inline double relative(const float *got, const check_array *want, int64_t from, int64_t count) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        const double w = check_at(want, from + i), d = (double)got[i] - w;
        difference += d * d;
        size += w * w;
    }
    return sqrt(difference / size);
}
#endif
