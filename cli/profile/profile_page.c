/* profile_page.c: run --profile --html FILE: writes the recorded profile as a page.
 * The page itself (page/flame.h) does not depend on the engine or the options. This file collects their texts. */
#include "profile/profile.h"

#include "base/console.h"
#include "base/files.h"
#include "measure/provenance.h"
#include "page/flame.h"

#include <stdarg.h>

static void fact(struct text_list *facts, const char *name, const char *text) {
    text_list_copy(facts, name);
    text_list_copy(facts, text);
}
static void fact_line(struct text_list *facts, const char *name, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fact(facts, name, line);
}
static void facts_of_request(struct text_list *facts, const struct profiler *profiler) {
    const struct request *request = profiler->request;
    const vp_layout *layout = layout_of(&request->input);
    const struct pass_result *run = profiler->timed.runs;
    struct text_buffer answer = {NULL, 0, 0};
    char experts[48] = "";
    fact(facts, "question", request->sample.question);
    text_add(&answer, run->answer, run->answer_bytes);
    fact(facts, "answer", answer.data);
    free(answer.data);
    fact_line(facts, "model", "%.700s%s", request->model.name,
              request->model.synthetic ? " (synthetic weights: latency is real, the answer is noise)" : "");
    if (request->model.config.expert_count)
        snprintf(experts, sizeof experts, ", top_k %d of %d", request->input.engine.top_k,
                 request->model.config.expert_count);
    fact_line(facts, "knobs", "weights %s%s, blocks %d of %d", profiler->settings->weights, experts,
              request->input.engine.active_block_count, request->model.config.block_count);
    for (size_t i = 0; i < request->sample.images.count; i++) {
        const vp_layout *cut = &request->cuts.each[i];
        fact(facts, "image", request->sample.images.items[i]);
        if (!request->model.rules->is_tiled)
            fact_line(facts, "size", "%dx%d px, %d view%s", cut->width_px, cut->height_px, cut->views,
                      plural_s((int64_t)cut->views));
        else
            fact_line(facts, "size", "%dx%d px, %d crops and the global view", cut->width_px, cut->height_px,
                      cut->crops);
    }
    fact_line(facts, "input tokens", "%d, including %d of the image%s", sequence_of(&request->input),
              layout ? layout->image_tokens : 0, request->sample.images.count > 1 ? "s" : "");
    fact_line(facts, "output tokens", "%d%s", run->reply.token_count,
              run->reply.ended_by_eos ? ", the last is EOS" : "");
}
static void facts_of_machine(struct text_list *facts, const struct profiler *profiler, const char *date) {
    vp_engine *engine = profiler->session->engine;
    char host[HOST_BYTES];
    struct text_buffer line = {NULL, 0, 0};
    fact(facts, "device", vp_engine_device(engine));
    if (vp_engine_device_note(engine)[0]) fact(facts, "device note", vp_engine_device_note(engine));
    if (profiler->on_gpu) fact(facts, "launches timed by", vp_engine_launch_timer(engine));
    fact(facts, "gemm for 1 row", vp_engine_gemm(engine, 1));
    fact(facts, "gemm for 1024 rows", vp_engine_gemm(engine, 1024));
    fact_line(facts, "ceilings", "reads %.4g GB/s, matrix products %.4g TFLOP/s",
              profiler->ops.ceilings.bytes_per_s / 1e9, profiler->ops.ceilings.flops_per_s / 1e12);
    fact(facts, "host", host_text(host));
    fact(facts, "written", date);
    fact(facts, "vlmprof", VLMPROF_VERSION);
    fact(facts, "build", build_text());
    for (int i = 0; i < profiler->settings->options->argc; i++) {
        if (i) text_add_string(&line, " ");
        text_add_string(&line, profiler->settings->options->argv[i]);
    }
    fact(facts, "command", line.data);
    free(line.data);
}
int profile_page_write(const struct profiler *profiler) {
    char date[DATE_BYTES];
    struct text_buffer out = {NULL, 0, 0};
    struct flame flame = {
        .model = profiler->request->model.name, .image = first_image(&profiler->request->sample),
        .question = profiler->request->sample.question, .device = vp_engine_device(profiler->session->engine),
        .date = date_text(date), .warnings = &profiler->timed.warnings, .on_device = profiler->on_gpu,
        .request_count = profiler->steps, .total_ns = profiler->total_ns, .ops = &profiler->ops,
        .stage_ns = profiler->stage_ns, .op_ns = profiler->op_ns, .request = profiler->kept.drawn};
    facts_of_request(&flame.facts, profiler);
    facts_of_machine(&flame.facts, profiler, date);
    flame_page_write(&flame, &out);
    int code = file_write_text(profiler->settings->html, &out);
    if (!code) print_note("vlmprof: the page is in %s\n", profiler->settings->html);
    text_list_free(&flame.facts);
    free(out.data);
    return code;
}
