/* nvtx_tool.c: what test_nvtx.sh builds. As a library (-DTOOL): a tool that takes NVTX ranges and prints them, "+name" and "-". As a program: ranges with the
 * engine's hooks, then what a pair costs with the clock's two reads and with nothing but the hooks (ns, the least of many short rounds). */
#ifdef TOOL
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static int NVTX_API push(const char *name) { return printf("+%s", name); }
static int NVTX_API pop(void) { return printf("-"); }

/* what NVTX looks for in the library that NVTX_INJECTION64_PATH names: 1 means that the tool is ready */
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of);
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
    const NvtxExportTableCallbacks *callbacks = (const NvtxExportTableCallbacks *)table_of(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions = NULL;
    unsigned int count = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) || count <= NVTX_CBID_CORE_RangePop) return 0;
    *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
#else
#define VLMPROF_IMPLEMENTATION
#include "vlmprof_engine.h"
#include "vlmprof_gguf.h"
#include <stdio.h>
#include <string.h>

enum { PAIRS = 1000, ROUNDS = 200 };

static double pair_ns(const vp_range_hooks *hooks) {
    static vp_range records[PAIRS];
    double least = 1e9;
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        vp_ranges ranges;
        int64_t start;
        if (vp_ranges_init(&ranges, records, PAIRS, 0, NULL, hooks) != VP_OK) return 1e9;
        start = vp_clock_ns();
        for (i = 0; i < PAIRS; i++) {
            VP_RANGE(&ranges, "pair");
            vp_range_end(&ranges);
        }
        if ((double)(vp_clock_ns() - start) / PAIRS < least) least = (double)(vp_clock_ns() - start) / PAIRS;
    }
    return least;
}

int main(int argc, char **argv) {
    const vp_range_hooks *hooks = vp_engine_range_hooks();
    vp_range records[1];
    vp_ranges ranges;
    if (argc > 1 && strcmp(argv[1], "cost") == 0) {
        const double bare = pair_ns(NULL), mirrored = hooks ? pair_ns(hooks) : -1.0;
        printf("%.1f ns a pair without NVTX, %.1f ns with NVTX\n", bare, mirrored);
        return !(hooks && mirrored - bare <= 10.0);
    }
    if (vp_ranges_init(&ranges, records, 1, 0, NULL, hooks) != VP_OK) return 1;
    VP_RANGE(&ranges, "request");
    VP_RANGE(&ranges, "without a record");
    vp_range_end(&ranges);
    vp_range_end(&ranges);
    puts(hooks ? " hooks" : " no hooks");
    return 0;
}
#endif
