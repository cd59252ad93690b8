/* fuzz_estimator.c: any bytes as a latency model. A model that is read predicts numbers or says why not; written and read again it is the same.
 * libFuzzer entry. */
#include "fuzz.h"
#include "cli/report/estimator.c"

static void predict(const struct estimator *estimator) {
    vp_latency_request request;
    vp_latency_prediction prediction;
    for (int turn = 0; turn < 3; turn++) {
        memset(&request, 0, sizeof request);
        for (int knob = 0; knob < ESTIMATE_KNOB_COUNT; knob++) {
            const struct number_range *range = &estimator->ranges[knob];
            int32_t value = (int32_t)(turn == 0 ? range->least : turn == 1 ? range->median : range->most);
            memcpy((char *)&request + ESTIMATE_KNOBS[knob].offset, &value, sizeof value);
            MUST(knob_at(&request, knob) == value);
        }
        if (vp_latency_predict(&estimator->model, &request, &prediction) != VP_OK) continue;
        for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) MUST(!isinf(prediction.stage[stage]));
    }
}
static struct text_buffer write_model(const struct estimator *estimator) {
    struct text_buffer out = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &out, 0);
    estimator_put(&writer, estimator, NULL);
    MUST(vp_json_finish(&writer) == VP_OK);
    return out;
}

static int read_model(const char *path, struct estimator **estimator) {
    struct model_reader reader;
    int code = model_open(&reader, path, ESTIMATOR_SCHEMA);
    if (!code) code = estimator_read(&reader, estimator);
    model_close(&reader);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct memory_file file;
    struct estimator *estimator = NULL, *again = NULL;
    fuzz_silence();
    int code = read_model(memory_file_fill(&file, data, bytes), &estimator);
    MUST(code == 0 ? estimator != NULL : code == EXIT_INPUT && estimator == NULL);
    if (code) return 0;
    predict(estimator);
    struct text_buffer first = write_model(estimator);
    MUST(read_model(memory_file_fill(&file, first.data, first.bytes), &again) == 0);
    struct text_buffer second = write_model(again);
    MUST(first.bytes == second.bytes && !memcmp(first.data, second.data, first.bytes));
    free(first.data);
    free(second.data);
    estimator_free(again);
    estimator_free(estimator);
    return 0;
}
