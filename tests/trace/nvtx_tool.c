/* nvtx_tool.c: built by test_nvtx.sh. As a library (-DTOOL) it is a tool that receives NVTX ranges and prints them, "+name" and "-". As a program it opens ranges with
 * the hooks of each backend, which share one header. */
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
#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include <stdio.h>
#include "kernels/shared/nvtx.h"

int main(void) {
    const vp_range_hooks *hooks = vk_range_hooks();
    vp_range_record records[1];
    vp_ranges ranges;
    if (vp_ranges_init(&ranges, records, 1, 0, NULL, hooks) != VP_OK) return 1;
    VP_RANGE(&ranges, "request");
    VP_RANGE(&ranges, "without a record");
    vp_range_end(&ranges);
    vp_range_end(&ranges);
    puts(hooks ? " hooks" : " no hooks");
    return 0;
}
#endif
