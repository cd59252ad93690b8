/* written.h: a JSON object that a test writes and then compares as a whole text. */
#ifndef WRITTEN_H
#define WRITTEN_H
#include "base/json.h"

static struct text_buffer out;
static vp_json_writer writer;
static inline vp_json_writer *begin(void) {
    out.bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, &out, 0);
    vp_json_begin_object(&writer);
    return &writer;
}
static inline const char *end(void) {
    vp_json_end_object(&writer);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    return out.data;
}
#endif
