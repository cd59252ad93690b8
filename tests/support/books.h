/* books.h: the totals that the records of a kernel-timed request must add up to, on any device. A test includes it after vlmprof.h and check.h.
 *
 * For each stage and decode step: launches are within it, consecutive and without overlap by rounding. Their times plus the gaps between them are the stage's time, and
 * their counts add up to the stage's counts. */
#ifndef BOOKS_H
#define BOOKS_H

typedef struct book { int64_t ns, gaps, at, launches, part_ns[VP_PART_COUNT]; uint64_t flops, bytes; } book;

/* adds one record to the timeline; `end` of the stage or step that it belongs to */
static inline int books_enter(book *b, const vp_launch *l, int64_t end) {
    if (!check_note(l->begin_ns >= b->at && l->ns >= 0 && l->begin_ns + l->ns <= end, __FILE__, __LINE__,
                    "%s of stage %d, step %d: %lld + %lld ns, the last one ended at %lld, its stage ends at %lld", l->name, (int)l->stage, (int)l->step,
                    (long long)l->begin_ns, (long long)l->ns, (long long)b->at, (long long)end))
        return 0;
    b->gaps += l->begin_ns - b->at;
    b->ns += l->ns;
    b->at = l->begin_ns + l->ns;
    b->part_ns[l->part] += l->ns;
    b->launches++;
    b->flops += l->flops;
    b->bytes += l->bytes;
    return 1;
}
static inline void books_compare(const book *b, const vp_stage_times *t, int stage) {
    int64_t parts = 0;
    if (t->ran[stage]) CHECK_NEAR((double)(b->ns + b->gaps), (double)t->device_ns[stage], 0.001 * (double)t->device_ns[stage]);
    CHECK_INT(b->ns, t->kernel_ns[stage]);
    CHECK_INT(b->launches, t->launches[stage]);
    CHECK(b->flops == (uint64_t)t->flops[stage] && b->bytes == (uint64_t)t->bytes[stage]);
    for (int p = 0; p < VP_PART_COUNT; p++) {
        CHECK_INT(b->part_ns[p], t->part_ns[stage][p]);
        parts += b->part_ns[p];
    }
    CHECK_INT(parts, b->ns);
}
/* the parts that a stage may have; the rest of its row must be empty */
static inline int books_part_fits(int stage, int part, int block) {
    int in_block = part == VP_PART_VIT_DENSE || part == VP_PART_VIT_ATTENTION || part == VP_PART_DENSE || part == VP_PART_ATTENTION ||
        part == VP_PART_ROUTER || part == VP_PART_EXPERTS;
    if (in_block ? block < 0 : block != -1) return 0;
    switch (stage) {
    case VP_STAGE_H2D: return part == VP_PART_INPUT;
    case VP_STAGE_VIT: return part >= VP_PART_VIT_EMBED && part <= VP_PART_VIT_ATTENTION;
    case VP_STAGE_CONNECTOR: return part == VP_PART_POOLING || part == VP_PART_PROJECTOR;
    case VP_STAGE_EMBED: return part == VP_PART_EMBED;
    case VP_STAGE_PREFILL: return part >= VP_PART_DENSE && part <= VP_PART_EXPERTS;
    case VP_STAGE_HEAD: return part == VP_PART_HEAD;
    case VP_STAGE_SAMPLE: return part == VP_PART_SAMPLE;
    default: return stage == VP_STAGE_DECODE && part >= VP_PART_EMBED && part <= VP_PART_SAMPLE;
    }
}
static inline int books_record(const vp_launch *l, int gpu) {
    int full = l->name && l->name[0] && l->file && !strchr(l->file, '/') && l->line > 0 && l->kind >= VP_LAUNCH_KERNEL && l->kind <= VP_LAUNCH_COPY_TO_HOST &&
        books_part_fits(l->stage, l->part, l->block) && l->host_ns >= 0 && l->host_begin_ns <= l->begin_ns;
    full = full && (l->kind == VP_LAUNCH_KERNEL ? l->dimensions >= 2 : l->dimensions == 0 && l->flops == 0);
    for (int i = 0; full && i < 4; i++) full = i < l->dimensions ? l->shape[i] > 0 : l->shape[i] == 0;
    if (full && !strncmp(l->name, "k_", 2)) full = l->grid > 0 && (gpu ? l->threads % 32 == 0 && l->registers > 0 : l->threads == 1);
    if (full && !gpu) full = l->host_begin_ns == l->begin_ns && l->host_ns == l->ns && l->registers == 0;
    return check_note(full, __FILE__, __LINE__, "%s (line %d): stage %d part %d block %d kind %d, [%d %d %d %d], %u x %u, host %lld + %lld, device %lld",
                      l->name ? l->name : "(no name)", (int)l->line, (int)l->stage, (int)l->part, (int)l->block, (int)l->kind, (int)l->shape[0],
                      (int)l->shape[1], (int)l->shape[2], (int)l->shape[3], l->grid, l->threads, (long long)l->host_begin_ns, (long long)l->host_ns,
                      (long long)l->begin_ns);
}
static inline void books_check(const vp_launch *launches, const vp_reply *reply, int gpu) {
    const vp_stage_times *t = &reply->times;
    int64_t i = 0, begin = 0;
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        book b = {0};
        CHECK_INT(t->begin_ns[stage], begin);
        b.at = begin;
        int64_t end = stage == VP_STAGE_DECODE ? begin : begin + t->device_ns[stage];
        for (int32_t step = stage == VP_STAGE_DECODE; stage == VP_STAGE_DECODE ? step < reply->token_count : step == 0; step++) {
            if (step) end += reply->step_ns[step - 1];
            for (; i < reply->launch_count && launches[i].stage == stage && launches[i].step == step; i++)
                if (!books_record(&launches[i], gpu) || !books_enter(&b, &launches[i], end)) return;
            b.gaps += end - b.at;
            b.at = end;
        }
        books_compare(&b, t, stage);
        begin = end;
    }
    CHECK_INT(i, reply->launch_count);
}
#endif
