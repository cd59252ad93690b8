/* test_noise.c: other load on a machine, read from synthetic system files; the rule for a quiet machine, each threshold from both sides; its JSON and its
 * messages. Nothing depends on this machine's load; its own files are read once, to test that this works. */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "measure/noise.h"
#include "results/fields.h"
#include "support/check.h"
#include "support/folder.h"

static vp_noise_reading reading(void) {
    vp_noise_reading now;
    memset(&now, 0x5a, sizeof now);
    vp_noise_read(folder, &now);
    return now;
}
#define SELF(utime, stime) "77 (a) b (c) R 1 -1 1 0 -1 4194304 101 0 0 0 " utime " " stime " 3 4 20 0 1 0 1257041 3133440\n"
#define CPUS "cpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5 cpu9\nctxt 9\n"

static void test_read(void) {
    check_case("without files, nothing is known");
    vp_noise_reading now = reading();
    CHECK(now.cpu_count == -1 && now.total_ticks == -1 && now.busy_ticks == -1 && now.steal_ticks == -1 && now.own_ticks == -1);
    CHECK(isnan(now.load) && isnan(now.mhz_low) && isnan(now.mhz_high));
    check_case("each number from its field: user includes guest time; the process's own time includes ended children");
    put_file("/proc/stat", "cpu  100 20 3000 40000 500000 6 7 8 90 10\n" CPUS);
    put_file("/proc/self/stat", SELF("1000", "200"));
    put_file("/proc/loadavg", "1.68 0.17 0.37 1/88 31755\n");
    put_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
    put_file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "<unknown>\n");
    put_file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "3000000\n");
    now = reading();
    CHECK_INT(now.cpu_count, 2);
    CHECK_INT(now.busy_ticks, 100 + 20 + 3000 + 6 + 7);
    CHECK_INT(now.steal_ticks, 8);
    CHECK_INT(now.total_ticks, 3133 + 8 + 40000 + 500000);
    CHECK_INT(now.own_ticks, 1000 + 200 + 3 + 4);
    check_case("the processes of a group count as this one, others do not");
    put_file("/proc/300/stat", "300 (a) b) S 299 299 1 0 -1 4194304 101 0 0 0 50 6 0 7 20 0 1 0 1 1\n");
    put_file("/proc/301/stat", "301 (c) S 1 301 1 0 -1 4194304 101 0 0 0 900 6 0 7 20 0 1 0 1 1\n");
    noise_read(folder, &now, 299);
    CHECK_INT(now.own_ticks, 1000 + 200 + 3 + 4 + 50 + 6 + 7);
    CHECK(now.load == 1.68 && now.mhz_low == 2000 && now.mhz_high == 3000);
    check_case("without cpufreq, /proc/cpuinfo gives the frequency");
    remove_folder(in_folder("sys"));
    put_file("/proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 1000.500\nprocessor\t: 1\ncpu MHz\t\t: 1200.000\ncpu MHz without a colon\ncpu MHz\t\t: 0\ncpu MHz\t\t: 99");
    now = reading();
    CHECK(now.mhz_low == 1000.5 && now.mhz_high == 1200);
}
static void test_torn(void) {
    static const char *const stats[] = {"", "cpu", "cpu ", "cpu  1 2 3 4 5 6 7", "cpu  1 2 3 4 5 6 7 8", "cpu  1 2 3 4\n" CPUS, "cpu  1 2 -3 4 5 6 7 8 9 10\n" CPUS,
        "cpu  1 2 3 4 5 6 7 99999999999999999999 9 10\n" CPUS, "cpu  72057594037927936 2 3 4 5 6 7 8 9 10\n" CPUS, "cpu  1 2 3 4 5 6 7 8x 9 10\n" CPUS,
        "cpux 1 2 3 4 5 6 7 8 9 10\n" CPUS, "intr 1 2\n" CPUS, "cpu  1 2 3 4 5 6 7 8 9 10\n", "\n"};
    static const char *const selves[] = {"", "77 (a", "77 (a)", "77 (a) R", "77 (a) R 1 -1 1 0 -1 4194304 101 0 0 0 1000 200 3",
        "77 (a) R 1 -1 1 0 -1 4194304 101 0 0 0 1000 200 3 4",
        "77 (a) R 1 -1 1 0 -1 4194304 101 0 0 0 1000 200 x 4 20\n", "77 (a) R 1 -1 1 0 -1 4194304 101 0 0 0 99999999999999999999 200 3 4 20\n", "77 a R 1 2\n"};
    static const char *const loads[] = {"", "x 1 2\n", "1.5", "-1 0 0\n", "99999999999999999999 1 1\n", ".5 1\n"};
    check_case("a line of /proc/stat that is torn, lacks numbers or has invalid ones: everything is unknown");
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        put_file("/proc/stat", stats[i]);
        vp_noise_reading now = reading();
        check_note(now.total_ticks == -1 && now.busy_ticks == -1 && now.steal_ticks == -1 && now.cpu_count == -1, __FILE__, __LINE__, "\"%s\" was read", stats[i]);
    }
    for (size_t i = 0; i < sizeof selves / sizeof *selves; i++) {
        put_file("/proc/self/stat", selves[i]);
        check_note(reading().own_ticks == -1, __FILE__, __LINE__, "\"%s\" was read", selves[i]);
    }
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        put_file("/proc/loadavg", loads[i]);
        check_note(isnan(reading().load), __FILE__, __LINE__, "\"%s\" was read", loads[i]);
    }
    check_case("an invalid frequency, or one of a nonexistent processor");
    put_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000000000\n");
    put_file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "20000");
    put_file("/proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: fast\n");
    CHECK(isnan(reading().mhz_low) && isnan(reading().mhz_high));
    check_case("a path that is too long, and this machine's own files");
    {
        char *longest = (char *)calloc(1, 2000);
        vp_noise_reading now;
        memset(longest, 'a', 1999);
        vp_noise_read(longest, &now);
        CHECK(now.total_ticks == -1 && isnan(now.load));
        free(longest);
        vp_noise_read("", &now);
        CHECK(now.total_ticks >= -1 && (isnan(now.load) || now.load >= 0) && (isnan(now.mhz_low) || now.mhz_low <= now.mhz_high));
    }
}

/* two CPUs, whose counters advanced by these ticks since a reading at 1000 */
static vp_noise_reading after(int64_t total, int64_t busy, int64_t steal, int64_t own) {
    vp_noise_reading now = {2, 1000 + total, 1000 + busy, 1000 + steal, 1000 + own, 0.5, 1000, 2000};
    return now;
}
static vp_noise between(int64_t total, int64_t busy, int64_t steal, int64_t own) {
    vp_noise_reading first = after(0, 0, 0, 0), second = after(total, busy, steal, own);
    vp_noise noise;
    CHECK_INT(vp_noise_between(&first, &second, &noise), 1);
    return noise;
}
static void test_between(void) {
    vp_noise_reading first = after(0, 0, 0, 0), second = after(39, 20, 1, 10), none = {0};
    check_case("shares of the time of all CPUs");
    vp_noise noise = between(200, 150, 10, 90);
    CHECK_NEAR(noise.steal_percent, 5, 1e-12);
    CHECK_NEAR(noise.other_cpu_percent, 30, 1e-12);
    CHECK(noise.load == 0.5 && noise.mhz_low == 1000 && noise.mhz_high == 2000);
    check_case("19 ticks per CPU are too few, 20 are enough");
    CHECK_INT(vp_noise_is_long_enough(&first, &second), 0);
    CHECK(isnan(between(39, 20, 1, 10).other_cpu_percent) && isnan(between(39, 20, 1, 10).steal_percent));
    second = after(40, 20, 1, 10);
    CHECK_INT(vp_noise_is_long_enough(&first, &second), 1);
    CHECK_NEAR(between(40, 20, 1, 10).other_cpu_percent, 25, 1e-12);
    check_case("counters that decrease or are inconsistent: unknown, never 0");
    CHECK(isnan(between(-200, 150, 10, 90).steal_percent));
    CHECK(isnan(between(200, -1, 10, 0).steal_percent) && isnan(between(200, -1, 10, 0).other_cpu_percent));
    CHECK(isnan(between(200, 100, -1, 90).steal_percent) && isnan(between(200, 191, 10, 90).steal_percent));
    CHECK(isnan(between(200, 100, 10, -1).other_cpu_percent));
    CHECK_NEAR(between(200, 100, 10, -1).steal_percent, 5, 1e-12);
    check_case("own time has a finer resolution than the CPUs': slightly more gives slightly below 0, much more is unknown");
    CHECK_NEAR(between(200, 100, 0, 120).other_cpu_percent, -10, 1e-12);
    CHECK(isnan(between(200, 100, 0, 121).other_cpu_percent));
    check_case("readings without counters: the load is known; empty readings: nothing is known");
    none.cpu_count = none.total_ticks = none.busy_ticks = none.steal_ticks = none.own_ticks = -1;
    none.load = none.mhz_low = none.mhz_high = (double)NAN;
    CHECK_INT(vp_noise_is_long_enough(&none, &none), 1);
    CHECK_INT(vp_noise_between(&none, &none, &noise), 0);
    CHECK(isnan(noise.load) && isnan(noise.steal_percent) && isnan(noise.other_cpu_percent) && isnan(noise.mhz_low));
    CHECK_INT(vp_noise_between(&first, &none, &noise), 1); /* the frequency of the first reading */
    CHECK(isnan(noise.steal_percent) && noise.mhz_high == 2000);
}

/* a summary of `all` blocks, `bad` of which have this share of other processes or of the host */
static vp_noise_summary blocks(int bad, int all, double other, double steal) {
    vp_noise_summary summary = vp_noise_summary_none();
    for (int i = 0; i < all; i++) {
        vp_noise noise = {1 + i % 2, i < bad ? steal : 0, i < bad ? other : 0, 1000 + i, 2000 + i};
        vp_noise_add(&summary, &noise);
    }
    return summary;
}
static vp_noise_summary spread_of(double spread, double bare) {
    vp_noise_summary summary = blocks(0, 10, 0, 0);
    summary.spread = spread;
    summary.bare_spread = bare;
    return summary;
}
static int reasons(vp_noise_summary summary) { return vp_noise_reasons(&summary); }
static void test_rule(void) {
    const vp_noise unknown = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    vp_noise_summary summary = blocks(3, 10, 60, 8);
    check_case("a summary: means, and the number of bad blocks");
    CHECK(summary.samples == 10 && summary.busy_samples == 3 && summary.stolen_samples == 3 && summary.other_samples == 10);
    CHECK_NEAR(summary.other_cpu_percent, 18, 1e-9);
    CHECK_NEAR(summary.steal_percent, 2.4, 1e-9);
    CHECK_NEAR(summary.busy_percent, 60, 1e-9);
    CHECK_NEAR(summary.stolen_percent, 8, 1e-9);
    CHECK_NEAR(summary.load, 1.5, 1e-9);
    CHECK(summary.mhz_low == 1000 && summary.mhz_high == 2009);
    vp_noise_add(&summary, &unknown);
    CHECK(summary.samples == 11 && summary.other_samples == 10 && summary.steal_samples == 10);
    CHECK_NEAR(summary.load, 1.5, 1e-9);
    check_case("each threshold, from below and from above");
    CHECK_INT(reasons(blocks(5, 10, 9.9, 0)), 0);
    CHECK_INT(reasons(blocks(5, 10, 10, 0)), VP_NOISE_IS_BUSY);
    CHECK_INT(reasons(blocks(5, 10, 0, 4.9)), 0);
    CHECK_INT(reasons(blocks(5, 10, 0, 5)), VP_NOISE_IS_STOLEN);
    CHECK_INT(reasons(blocks(1, 11, 90, 90)), 0);
    CHECK_INT(reasons(blocks(1, 10, 90, 0)), VP_NOISE_IS_BUSY);
    CHECK_INT(reasons(blocks(1, 10, 0, 90)), VP_NOISE_IS_STOLEN);
    CHECK_INT(reasons(spread_of(0.05, 0.05)), 0);
    CHECK_INT(reasons(spread_of(0.0501, 0)), VP_NOISE_IS_SPREAD);
    CHECK_INT(reasons(spread_of((double)NAN, 0.0501)), VP_NOISE_IS_SPREAD);
    CHECK_INT(reasons(blocks(10, 10, 90, 90)), VP_NOISE_IS_BUSY | VP_NOISE_IS_STOLEN);
    check_case("unknown values are not a reason");
    CHECK_INT(reasons(vp_noise_summary_none()), 0);
    CHECK_INT(reasons(spread_of((double)NAN, (double)NAN)), 0);
}
static void test_spread(void) {
    double ratios[20];
    check_case("the spread of pairs: 9 are too few; a common shift has no effect, a few slow ones little");
    for (int i = 0; i < 20; i++) ratios[i] = i % 2 ? 0.3 : 0.3;
    CHECK(isnan(vp_noise_spread(ratios, 9)) && vp_noise_spread(ratios, 10) == 0);
    for (int i = 0; i < 20; i++) ratios[i] = 0.3 + 0.01 * (i % 2 ? 1 : -1);
    CHECK_NEAR(vp_noise_spread(ratios, 20), 1.4826 * 0.01 / sqrt(2), 1e-12);
    for (int i = 0; i < 20; i++) ratios[i] = i < 5 ? 5 : 0.001 * i;
    CHECK(vp_noise_spread(ratios, 20) < 0.01);
}

/* ---------------------------------------------------------------------------------------------------- JSON and words */
static void test_json(void) {
    vp_noise_summary summary = blocks(3, 10, 62.04, 8.06), back;
    struct text_buffer text = {NULL, 0, 0};
    struct parsed parsed = {0};
    vp_json_writer writer;
    static const char foreign[] = "{\"samples\": -3, \"busy_samples\": \"x\", \"load\": [], \"frequency_mhz\": [1]}";
    summary.spread = 0.125;
    summary.pair_count = 40;
    check_case("a summary as JSON and read back; unreported frequencies are null");
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_begin_object(&writer);
    put_noise(&writer, &summary);
    vp_json_end_object(&writer);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    CHECK_INT(parse_json(&parsed, text.data, text.bytes, NULL), VP_OK);
    fields_read(&parsed.json, vp_json_get(&parsed.json, 0, "noise"), &NOISE, &back);
    CHECK(back.samples == 10 && back.busy_samples == 3 && back.stolen_samples == 3 && back.pair_count == 40 && back.bare_pair_count == 0);
    CHECK(back.busy_percent == 62 && back.stolen_percent == 8.1 && back.spread == 0.125 && isnan(back.bare_spread) && back.mhz_high == 2009);
    CHECK_INT(vp_noise_reasons(&back), vp_noise_reasons(&summary));
    check_case("an older file has no numbers; impossible numbers are rejected");
    fields_read(&parsed.json, VP_JSON_NONE, &NOISE, &back);
    CHECK(back.samples == 0 && isnan(back.load) && vp_noise_reasons(&back) == 0);
    CHECK_INT(parse_json(&parsed, foreign, strlen(foreign), NULL), VP_OK);
    fields_read(&parsed.json, 0, &NOISE, &back);
    CHECK(back.samples == 0 && back.busy_samples == 0 && isnan(back.load) && isnan(back.mhz_high) && vp_noise_reasons(&back) == 0);
    FREE_ALL(parsed.nodes, text.data);
}
static void check_warning_of(const vp_noise_summary *items, const char *const *paths, size_t count, const char *wanted) {
    static const char *const names[] = {"a.json", "b.json", "c.json"};
    struct text_list warnings = {NULL, 0};
    noise_warn(&warnings, items, paths, names, count, "do this");
    CHECK_INT(warnings.count, wanted != NULL);
    if (wanted && warnings.count) CHECK_TEXT(warnings.items[0], wanted);
    text_list_free(&warnings);
}
static void check_warning(const vp_noise_summary *items, size_t count, const char *wanted) { check_warning_of(items, NULL, count, wanted); }
static void test_words(void) {
    static const char *const paths[] = {"build/one/a.json", "build/two/b.json", "build/one/c.json"};
    vp_noise_summary items[3] = {blocks(1, 10, 90, 0), blocks(14, 30, 62, 0), blocks(0, 10, 0, 0)}, several[3];
    check_case("the warning gives the observation, the worst block and the remedy");
    check_warning(items + 2, 1, NULL);
    check_warning(items, 3, "the machine was not quiet: other processes used 62 % of the CPU during 14 of 30 blocks of runs (worst: b.json; 2 of 3 configurations are "
                            "affected). Times may be too high: do this");
    items[2] = blocks(1, 1, 0, 12);
    check_warning(items + 2, 1, "the machine was not quiet: the host of this virtual machine took 12 % of the CPU during the runs. Times may be too high: do this");
    items[2] = spread_of(0.08, 0.2);
    items[2].bare_pair_count = 30;
    check_warning(items + 2, 1, "the machine was not quiet: two runs of one request differ by 20.0 % (standard deviation, 30 pairs). Times may be too high: do this");
    items[2] = blocks(3, 3, 50, 6);
    items[2].spread = 0.08;
    items[2].pair_count = 12;
    check_warning(items + 2, 1, "the machine was not quiet: other processes used 50 % of the CPU during 3 of 3 blocks of runs; the host of this virtual machine "
                                "took 6 % of the CPU during 3 of 3 blocks of runs; neighbouring runs of equal work differ by 8.0 % (standard deviation, 12 pairs). "
                                "Times may be too high: do this");
    check_case("each number is followed by the configuration that it is of, and each sweep has its own clause");
    several[0] = blocks(14, 30, 62, 0);
    several[1] = blocks(3, 30, 50, 0);
    several[2] = spread_of(0.2, NAN);
    check_warning(several, 3, "the machine was not quiet: other processes used 62 % of the CPU during 14 of 30 blocks of runs (worst: a.json); neighbouring runs of "
                              "equal work differ by 20.0 % (standard deviation, 0 pairs) (worst: c.json; 3 of 3 configurations are affected). Times may be too high: "
                              "do this");
    check_warning_of(several, paths, 3, "the machine was not quiet: build/one: other processes used 62 % of the CPU during 14 of 30 blocks of runs (worst: a.json); "
                                        "neighbouring runs of equal work differ by 20.0 % (standard deviation, 0 pairs) (worst: c.json; 2 of 2 configurations are "
                                        "affected); build/two: other processes used 50 % of the CPU during 3 of 30 blocks of runs. Times may be too high: do this");
    several[0] = several[2] = blocks(0, 10, 0, 0);
    check_warning_of(several, paths, 3, "the machine was not quiet: build/two: other processes used 50 % of the CPU during 3 of 30 blocks of runs. Times may be "
                                        "too high: do this");
}
static vp_estimate estimate(double value, double low, double high) {
    vp_estimate made;
    made.value = value;
    made.low = low;
    made.high = high;
    return made;
}
static void test_cost(void) {
    const vp_estimate noisy = estimate(16.48, -16.73, 49.68), few = estimate(269.57, (double)NAN, (double)NAN);
    char text[300];
    check_case("a cost is printed to its known precision");
    CHECK_TEXT(number_cost(estimate(2.312, 1.901, 2.723)).text, "+2.31 [+1.90, +2.72]");
    CHECK_TEXT(number_cost(estimate(40.26, 37.04, 43.48)).text, "+40.3 [+37.0, +43.5]");
    CHECK_TEXT(number_cost(estimate(14061.39, 13777.65, 14345.14)).text, "+14061 [+13778, +14345]");
    CHECK_TEXT(number_cost(estimate(-0.001, -0.002, 0.001)).text, "+0.00 [+0.00, +0.00]");
    CHECK_TEXT(number_cost(noisy).text, "-17 to +50");
    CHECK_TEXT(number_cost(estimate(9, -0.3, 19)).text, "+0 to +19");
    CHECK_TEXT(number_cost(few).text, "-");
    check_case("known to a point, or to a tenth of its value; from both sides");
    CHECK(is_cost_known(estimate(0, -1, 1)) && !is_cost_known(estimate(0, -1.01, 1.01)));
    CHECK(is_cost_known(estimate(20, 18, 22)) && !is_cost_known(estimate(20, 17.9, 22.1)));
    CHECK(!is_cost_known(few) && !is_cost_known(estimate((double)NAN, -5, 5)));
    check_case("the number of pairs needed for a verdict grows with the square of the width");
    CHECK_INT(pairs_to_tell(estimate(0, -1, 1), 20), 20);
    CHECK_INT(pairs_to_tell(estimate(0, -2, 2), 20), 80);
    CHECK_INT(pairs_to_tell(noisy, 20), 23000); /* 20 * 33.205^2 = 22051 */
    CHECK_INT(pairs_to_tell(few, 5), 0);
    say_unknown_cost(text, sizeof text, noisy, 20, "rounds");
    CHECK_TEXT(text, "this machine is too noisy for a verdict: between -17 and +50 %; with this noise, about 23000 rounds would resolve 1 %, fewer on a quiet machine");
    say_unknown_cost(text, sizeof text, few, 5, "rounds");
    CHECK_TEXT(text, "5 rounds are too few for a verdict: an interval needs 6");
}
int main(void) {
    if (!folder_make("noise")) return 1;
    RUN_TESTS(test_read, test_torn, test_between, test_rule, test_spread, test_json, test_words, test_cost);
    remove_folder(folder);
    return check_done("test_noise");
}
