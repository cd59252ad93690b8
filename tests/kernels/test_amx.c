/* test_amx.c - the AMX code with tiles in software (tests/emulator/amx_on_cpu.h): the cases of test_gemm.c check its results on any machine with AVX-512 BF16. Its speed
 * is meaningless. */
#ifdef __x86_64__
#include "emulator/amx_on_cpu.h"
#else
#define AMX_ON_CPU 1 /* test_gemm.c without its main */
#endif
#pragma GCC diagnostic ignored "-Wunused-function" /* some of its cases do not run here */
#include "test_gemm.c"

int main(void) {
    const vk_gemm_kernel *amx = &vk_gemm_kernels[0];
    if (strcmp(amx->name, "amx") || !amx->present()) {
        check_skip("AMX", "this processor has no AVX-512 BF16, which stands beside the tiles");
        return check_done("test_amx");
    }
    test_tile(amx, 32, 0);
    test_tile(amx, 480, 0);
    check_case("a synthetic checkpoint");
    if (!CHECK(write_checkpoint()) || !CHECK_INT(vp_checkpoint_open(folder, NULL, &own_checkpoint, NULL), VP_OK)) return check_done("test_amx");
    test_linear(2, 1, 0);
    test_linear(2, 33, 0);
    test_linear(2, 129, 0);
    test_jobs(amx, 0, 2);
    for (int bits = 4; bits <= 8; bits += 4) {
        test_integers(2, 33, bits);
        test_integers(2, 97, bits);
        test_byte_ends(amx, 17, 96, bits);
        test_byte_ends(amx, 61, 1120, bits);
        test_byte_ends(amx, 97, 1120, bits);
    }
    remove_checkpoint();
    for (int causal = 0; causal < 2; causal++) {
        test_attention(1, 3, 1, 64, causal, 0);
        test_attention(33, 4, 2, 72, causal, 0);
        test_attention(VK_ATTEND_KEYS + 33, 1, 1, 128, causal, 0);
    }
    return check_done("test_amx");
}
