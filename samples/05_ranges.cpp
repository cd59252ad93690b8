/* A C++ program that profiles itself with scope guards: ranges end with their scopes, also when an exception leaves
 * them. The last step passes nullptr, which switches its ranges off. It prints torch.profiler's table. c++ -I. -Iparts samples/05_ranges.cpp -lm && ./a.out */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof_ranges.hpp"
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <vector>

static double total(vp_ranges *ranges, const std::vector<double> &values) {
    vlmprof::range range(ranges, "total");
    range.set({(int64_t)values.size(), (int64_t)(values.size() * sizeof(double)), 0, {(int32_t)values.size()}, 1});
    if (values.empty()) throw std::invalid_argument("no values");
    return std::accumulate(values.begin(), values.end(), 0.0);
}

int main() {
    static vp_range_record records[64];
    static vp_op rows[16];
    vp_ranges ranges;
    vp_ops ops;
    vp_ops_print_options options = vp_ops_print_options_default();
    double sum = 0;

    vp_ranges_init(&ranges, records, 64, 0, "main", nullptr);
    for (int step = 0; step < 4; step++) {
        vp_ranges *recorded = step < 3 ? &ranges : nullptr;
        vlmprof::range range(recorded, "step");
        std::vector<double> values((size_t)step * 1000, 0.5);
        try {
            sum += total(recorded, values);
        } catch (const std::invalid_argument &) { /* step 0 has no values: its range "total" has ended all the same */ }
    }
    vp_ops_init(&ops, rows, 16, 0, 0);
    if (vp_ops_add_ranges(&ops, &ranges) != VP_OK || vp_ops_sort(&ops, "cpu_time_total") != VP_OK) return 1;
    std::printf("sum %.0f, %d ranges, %d open\n", sum, (int)ranges.count, ranges.open == -1 ? 0 : 1);
    return vp_ops_print_torch(&ops, &options, [](void *, const char *text, size_t bytes) {
               return std::fwrite(text, 1, bytes, stdout) == bytes ? VP_OK : VP_ERR_WRITE;
           }, nullptr) == VP_OK ? 0 : 1;
}
