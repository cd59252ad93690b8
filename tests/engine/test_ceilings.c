/* test_ceilings.c: vp_engine_ceilings on given times: the best round of reading, of copying and of products, when it stops, and its failures. The device is simulated;
 * each of its operations takes the time in a script, on a clock that nothing else moves. */
#define VLMPROF_CLOCK_NS time_ns
#include <stdint.h>
static int64_t time_ns;
#define VLMPROF_IMPLEMENTATION
#include "engine/engine_internal.h"
#include "support/check.h"
#include "vlmprof.h"

enum { MIB = 1 << 20, BORROWED = 256 * MIB, MS = 1000000, FILLED = 8 * MIB };

/* ---- the device */
static struct device {
    int64_t read_ns[4], copy_ns[4]; /* times of the first rounds; the last one also applies to all later rounds */
    int64_t product_ns[5];          /* for 256, 512 .. 4096 rows; the first product of a size takes 60 ms more */
    int has_no_memory, fails;       /* fails: the first copy */
    /* the calls it received */
    int reads, copies, borrowed, given_back, entered, recovered, streams[16], products[5];
    uint64_t read_bytes;
    const void *read_from;
    int64_t marked[2];
    int commits, fills; /* commits: the operands are sent once; fills: then copied all over the borrowed memory */
} device;
static uint16_t staged[FILLED / 2];
static void *device_stage(vk_queue *queue, void *to, size_t bytes) {
    (void)queue;
    CHECK((uintptr_t)to == 64 && bytes == FILLED);
    return staged;
}
static void device_commit(vk_queue *queue, void *to, size_t bytes) {
    (void)queue;
    CHECK((uintptr_t)to == 64 && bytes == FILLED);
    device.commits++;
}
static void device_read(vk_queue *queue, float *sums, const float *x, int blocks, int piece, int streams) {
    (void)queue;
    (void)sums;
    device.streams[device.reads % 16] = streams;
    device.read_bytes = (uint64_t)blocks * (uint64_t)piece * sizeof(float);
    device.read_from = x;
    time_ns += device.read_ns[device.reads < 3 ? device.reads : 3];
    device.reads++;
}
static void device_copy(vk_queue *queue, void *to, const void *from, size_t bytes) {
    if (bytes == FILLED) {
        CHECK((uintptr_t)from == 64 && (uintptr_t)to == 64 + (uintptr_t)FILLED * (uintptr_t)(device.fills + 1));
        device.fills++;
        return;
    }
    CHECK_INT(bytes, BORROWED / 2);
    CHECK((uintptr_t)to == (uintptr_t)from + bytes);
    time_ns += device.copy_ns[device.copies < 3 ? device.copies : 3];
    device.copies++;
    queue->error = device.fails;
}
static void device_linear(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *w, vk_epilogue epilogue) {
    int place = 0;
    (void)queue;
    (void)y;
    (void)x;
    CHECK(ldy == m && ldx == m && w->n == m && w->k == m && w->k_padded == m && epilogue == VK_STORE);
    while (place < 4 && 256 << place < m) place++;
    time_ns += device.product_ns[place] + (device.products[place] ? 0 : 60 * MS);
    device.products[place]++;
}
static int64_t device_mark(vk_queue *queue, int slot, const int32_t *token) {
    (void)queue;
    (void)token;
    return device.marked[slot] = time_ns;
}
static vp_result device_wait(vk_queue *queue, int slot, vp_error *error) {
    (void)slot;
    return queue->error ? vp_error_set(error, VP_ERR_DEVICE, -1, "copy", "it failed") : VP_OK;
}
static int64_t device_between(vk_queue *queue, int from, int to) {
    (void)queue;
    return device.marked[to] - device.marked[from];
}
static void device_enter(vk_queue *queue) {
    (void)queue;
    device.entered++;
}
static void device_recover(vk_queue *queue) {
    queue->error = 0;
    device.recovered++;
}
static void *device_borrow(vk_queue *queue, size_t bytes) {
    (void)queue;
    CHECK_INT(bytes, BORROWED);
    device.borrowed++;
    return device.has_no_memory ? NULL : (void *)((uintptr_t)64); /* the memory is never accessed */
}
static void device_give_back(vk_queue *queue, void *memory, size_t bytes) {
    (void)queue;
    CHECK((uintptr_t)memory == 64 && bytes == BORROWED);
    device.given_back++;
}

/* its engine, whose weights have this size; host_memory: 1 for the CPU's */
static vp_engine engine;
static vk_backend backend;
static vk_queue queue;
static void begin(size_t weights_bytes, int host_memory) {
    static const struct device script = {
        {40 * MS, 20 * MS, 30 * MS, 30 * MS}, {9 * MS, 8 * MS, 7 * MS, 8 * MS}, {2 * MS, 8 * MS, 9 * MS, 100 * MS, 100 * MS},
        0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}, 0, NULL, {0, 0}, 0, 0};
    device = script;
    memset(&engine, 0, sizeof engine);
    memset(&backend, 0, sizeof backend);
    memset(&queue, 0, sizeof queue);
    backend.kernels.read = device_read;
    backend.stage = device_stage;
    backend.stage_bytes = (size_t)64 * MIB;
    backend.commit = device_commit;
    backend.copy = device_copy;
    backend.linear = device_linear;
    backend.mark = device_mark;
    backend.wait = device_wait;
    backend.between = device_between;
    backend.enter = device_enter;
    backend.recover = device_recover;
    backend.borrow = device_borrow;
    backend.give_back = device_give_back;
    backend.host_memory = host_memory;
    engine.backend = &backend;
    engine.queue = &queue;
    engine.weights = &engine;
    engine.weights_bytes = weights_bytes;
}
static vp_ceilings measured(void) {
    vp_ceilings c = {0};
    vp_error error = {VP_OK, -1, "", ""};
    CHECK_INT(vp_engine_ceilings(&engine, &c, &error), VP_OK);
    return c;
}
static void check_products(int a, int b, int c, int d, int e) {
    const int wanted[5] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) CHECK_INT(device.products[i], wanted[i]);
}
static double product_rate(int size, double ns) { return 2.0 * size * size * size * 1e9 / ns; }

static void test_cpu(void) {
    check_case("the best round counts for reads, for copies there and back, and for products");
    begin(MIB, 1);
    vp_ceilings c = measured();
    CHECK(c.read_bytes == BORROWED - MIB && c.read_bytes == device.read_bytes && device.read_from != engine.weights);
    CHECK_NEAR(c.bytes_per_s, (double)c.read_bytes * 1e9 / (20 * MS), 1);
    CHECK_NEAR(c.copy_bytes_per_s, (double)BORROWED * 1e9 / (7 * MS), 1);
    CHECK_NEAR(c.flops_per_s, product_rate(1024, 9 * MS), 1);
    CHECK_INT(c.product_size, 1024);
    check_case("rounds end after 100 ms; four streams and one are read alternately");
    CHECK_INT(device.reads, 4); /* 40 + 20 + 30 + 30 */
    for (int i = 0; i < 4; i++) CHECK_INT(device.streams[i], i % 2 ? 1 : 4);
    CHECK_INT(device.copies, 13); /* 9 + 8 + 7 + 10 x 8 */
    check_case("a size ends after 25 ms; sizes end once 12 products take longer than 100 ms; the first product of a size does not count");
    check_products(1 + 13, 1 + 4, 1 + 3, 0, 0);
    check_case("the memory is returned, and the second call returns the stored results");
    CHECK(device.entered == 1 && device.borrowed == 1 && device.given_back == 1 && device.recovered == 0);
    vp_ceilings again = measured();
    CHECK(!memcmp(&c, &again, sizeof c) && device.entered == 1 && device.borrowed == 1);
    check_case("after two measurements, the larger value of each counts, because a busy machine can only lower it");
    {
        const vp_ceilings quiet = c;
        begin(MIB, 1);
        for (int i = 0; i < 4; i++) device.read_ns[i] *= 2;
        for (int i = 0; i < 4; i++) device.copy_ns[i] *= 2;
        c = measured();
        CHECK(c.bytes_per_s < 0.6 * quiet.bytes_per_s);
        engine.ceilings.flops_per_s = 2 * c.flops_per_s; /* this value was higher the first time */
        engine.ceilings.product_size = 77;
        device.reads = device.copies = device.fills = 0;
        for (int i = 0; i < 4; i++) device.read_ns[i] /= 2;
        CHECK_INT(vp_engine_ceilings_again(&engine, &again, NULL), VP_OK);
        CHECK_NEAR(again.bytes_per_s, quiet.bytes_per_s, 1);
        CHECK(again.flops_per_s == 2 * c.flops_per_s && again.product_size == 77);
        c = measured();
        CHECK(!memcmp(&c, &again, sizeof c));
    }
    check_case("at least two rounds, at most 16");
    begin(MIB, 1);
    memset(device.read_ns, 0, sizeof device.read_ns);
    device.read_ns[3] = MS;
    for (int i = 0; i < 4; i++) device.copy_ns[i] = 400 * MS;
    measured();
    CHECK_INT(device.reads, 16);
    CHECK_INT(device.copies, 2);
    check_case("at least two sizes of products, unless the machine is overloaded");
    begin(MIB, 1);
    device.product_ns[0] = 50 * MS;
    device.product_ns[1] = 60 * MS;
    c = measured();
    check_products(3, 3, 0, 0, 0);
    CHECK_INT(c.product_size, 512);
    begin(MIB, 1);
    device.product_ns[0] = 900 * MS;
    c = measured();
    check_products(3, 0, 0, 0, 0);
    CHECK_NEAR(c.flops_per_s, product_rate(256, 900 * MS), 1);
}
static void test_gpu(void) {
    check_case("a GPU times short products in groups of eight; all sizes if no size takes long; the best counts");
    begin(MIB, 0);
    for (int i = 0; i < 4; i++) device.product_ns[i] = MS / 10;
    device.product_ns[4] = 2 * MS;
    vp_ceilings c = measured();
    check_products(1 + 1 + 15 * 8, 1 + 1 + 15 * 8, 1 + 1 + 15 * 8, 1 + 1 + 15 * 8, 1 + 13);
    CHECK_NEAR(c.flops_per_s, product_rate(2048, MS / 10), 1);
    CHECK_INT(c.product_size, 2048);
    check_case("weights larger than the borrowed memory are read instead, up to 1 GiB");
    begin((size_t)300 * MIB + 100, 0);
    c = measured();
    CHECK(device.read_from == engine.weights && c.read_bytes == (uint64_t)300 * MIB && device.read_bytes == c.read_bytes);
    begin((size_t)3000 * MIB, 0);
    c = measured();
    CHECK(device.read_from == engine.weights && c.read_bytes == (uint64_t)1024 * MIB && device.read_bytes == c.read_bytes);
    begin(BORROWED, 0);
    measured();
    CHECK(device.read_from != engine.weights);
}
static void refused(vp_result code, const char *text, int given_back, int recovered) {
    vp_ceilings c, untouched;
    vp_error error = {VP_OK, -1, "", ""};
    memset(&untouched, 0x5a, sizeof untouched);
    c = untouched;
    CHECK_INT(vp_engine_ceilings(&engine, &c, &error), code);
    CHECK_INT(error.code, code);
    CHECK(!memcmp(&c, &untouched, sizeof c) && engine.ceilings.bytes_per_s == 0.0 && queue.error == 0);
    check_note(strstr(error.text, text) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, error.text);
    CHECK_INT(device.given_back, given_back);
    CHECK_INT(device.recovered, recovered);
}
/* Products of equal values, or of few different ones, draw less power and run faster than a model's. */
static void test_values(void) {
    static uint8_t seen[65536];
    int negative = 0, different = 0, outside = 0;
    check_case("operands have both signs, from 1/8 to 1, and include every bf16 value in that range");
    begin(MIB, 1);
    measured();
    CHECK(device.commits == 1 && device.fills == BORROWED / FILLED - 1);
    for (int i = 0; i < FILLED / 2; i++) {
        int size = staged[i] & 0x7fff;
        outside += size < 0x3e00 || size > 0x3f80; /* 1/8, 1 */
        negative += staged[i] >> 15;
        different += !seen[staged[i]];
        seen[staged[i]] = 1;
    }
    CHECK_INT(outside, 0);
    CHECK_NEAR(negative, FILLED / 4, FILLED / 100);
    CHECK(different >= 500);
}
static void test_errors(void) {
    check_case("no memory can be borrowed");
    begin(MIB, 0);
    device.has_no_memory = 1;
    refused(VP_ERR_MEMORY, "needs 256 MiB temporarily", 0, 0);
    CHECK(device.reads == 0 && device.copies == 0);
    check_case("if the device fails, nothing more is sent, and the engine remains usable");
    begin(MIB, 0);
    device.fails = 1;
    refused(VP_ERR_DEVICE, "it failed", 1, 1);
    CHECK_INT(device.copies, 1);
    check_products(0, 0, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        check_case("a clock that does not advance during %s", i == 0 ? "reading" : i == 1 ? "copies" : "products");
        begin(MIB, 0);
        memset(i == 0 ? device.read_ns : i == 1 ? device.copy_ns : device.product_ns, 0, i == 2 ? sizeof device.product_ns : sizeof device.read_ns);
        refused(VP_ERR_DEVICE, "the device's clock reported no time", 1, 0);
    }
}

int main(void) {
    RUN_TESTS(test_cpu, test_gpu, test_values, test_errors);
    return check_done("test_ceilings");
}
