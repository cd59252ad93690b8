/* gpu_report.c - what the GPU kernels compile to, for each architecture, without a GPU: registers, spills, occupancy, the mix of instructions, what waits in
 * loops and the bytes of shared memory that a tensor-core instruction reads; compared with gates.
 *
 *   gpu_report [--keep] GATES COMPILER LAUNCHES ARCH PTXAS SASS [ARCH PTXAS SASS ..]
 *
 * LAUNCHES is what tests/bench/gpu/launches.c prints for the architectures' chips, PTXAS what `nvcc -Xptxas -v` said, SASS what `cuobjdump -sass`
 * prints of the object. COMPILER is a word for nvcc's release: GATES made by another one are shown and not enforced, because registers and
 * instructions are the compiler's. --keep rewrites GATES.
 *
 * An instruction is in a loop if it can be reached from itself. The way is followed over branches, through BRX to all that nothing else reaches, and
 * not over BRA.DIV, which is taken by warps whose threads went apart. Bytes of shared memory for an MMA: what the warps' LDS, LDSM and the
 * descriptors of HGMMA read in loops, over the HMMA and HGMMA there.
 *
 * Exits 1 when a kernel spills, lacks a gate, is missing or is worse than its gate; 2 for a wrong call; 3 for a file that does not read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 512, NAME = 48, CODE = 40000, GROUPS = 8 };
enum { TENSOR, FLOAT, INTEGER, GLOBAL, SHARED, SYNC, BRANCH, OTHER };
typedef struct kernel {
    char arch[12], name[NAME];
    int registers, fixed_shared, spilled, in_sass;   /* -1: ptxas said nothing */
    int instructions, in_loops, group[GROUPS];       /* groups: of the loops' */
    int warpsync, bar, hmma, hgmma, tma, local;      /* warpsync, bar, hmma: in loops */
    long shared_read;                                /* bytes in loops */
    int threads, dynamic_shared, occupancy;          /* of its largest launch; threads 0: not launched */
    long prefill, decode;
} kernel;
typedef struct instruction { unsigned address; char text[88]; unsigned target; int kind, reached; } instruction;
enum { GOES_ON, JUMPS, MAY_JUMP, CALLS, ENDS, INDIRECT };

static kernel kernels[KERNELS];
static int kernel_count, failures;
static instruction code[CODE];
static int code_count;

static kernel *find(const char *arch, const char *name, int make) {
    for (int i = 0; i < kernel_count; i++)
        if (!strcmp(kernels[i].arch, arch) && !strcmp(kernels[i].name, name)) return &kernels[i];
    if (!make || kernel_count == KERNELS) return NULL;
    memset(&kernels[kernel_count], 0, sizeof kernels[0]);
    snprintf(kernels[kernel_count].arch, sizeof kernels[0].arch, "%s", arch);
    snprintf(kernels[kernel_count].name, sizeof kernels[0].name, "%s", name);
    kernels[kernel_count].registers = -1;
    return &kernels[kernel_count++];
}
/* _Z11k_layernormPv.. -> k_layernorm; what is not such a name stays */
static void plain_name(char *out, const char *mangled) {
    const char *digits = strstr(mangled, "_Z");
    size_t length = digits ? strspn(digits + 2, "L") + 2 : 0;
    int count = digits ? atoi(digits + length) : 0;
    if (digits) digits += length + strspn(digits + length, "0123456789");
    if (count <= 0 || count >= NAME || (size_t)count > strlen(digits)) snprintf(out, NAME, "%s", mangled);
    else snprintf(out, NAME, "%.*s", count, digits);
}
static FILE *opened(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fprintf(stderr, "gpu_report: %s cannot be read\n", path);
    return file;
}
static int has(const char *text, const char *word) { return !strncmp(text, word, strlen(word)); }

/* ---- what ptxas said */
static int read_ptxas(const char *path, const char *arch) {
    char line[4096], name[NAME];
    kernel *at = NULL;
    int found = 0;
    FILE *file = opened(path);
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        const char *word = strstr(line, "Compiling entry function '"), *bytes;
        int frame, stores, loads;
        if (word) {
            plain_name(name, word + strlen("Compiling entry function '"));
            at = find(arch, name, 1);
            found += at != NULL;
        } else if (at && sscanf(line, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &frame, &stores, &loads) == 3) {
            at->spilled = frame + stores + loads;
        } else if (at && (word = strstr(line, "Used ")) != NULL) {
            at->registers = atoi(word + 5);
            bytes = strstr(line, " bytes smem");
            while (bytes && bytes > line && bytes[-1] >= '0' && bytes[-1] <= '9') bytes--;
            at->fixed_shared = bytes ? atoi(bytes) : 0;
        }
    }
    fclose(file);
    if (!found) fprintf(stderr, "gpu_report: %s names no kernel\n", path);
    return found;
}

/* ---- SASS */
/* the instruction without its predicate */
static const char *bare(const char *text) {
    if (*text == '@') while (*text && *text != ' ') text++;
    while (*text == ' ') text++;
    return text;
}
static int group_of(const char *op) {
    static const char *const words[GROUPS][20] = {
        { "HMMA", "HGMMA", "IMMA", "IGMMA", "QGMMA", "QMMA", "BMMA", "DMMA" },
        { "FADD", "FMUL", "FFMA", "FSETP", "FMNMX", "FSEL", "FCHK", "FSET", "MUFU", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "F2F", "F2I", "I2F", "FSWZADD" },
        { "IMAD", "IADD", "LOP", "ISETP", "SHF", "LEA", "PRMT", "IMNMX", "SEL", "IABS", "ISCADD", "VIADD", "POPC", "FLO", "SGXT", "BMSK", "VIMNMX", "PLOP" },
        { "LDG", "STG", "ATOM", "RED", "LD.", "ST.", "CCTL", "LDL", "STL" },
        { "LDS", "STS", "LDSM", "STSM", "UBLKCP", "UTMA", "ATOMS" },
        { "BAR", "WARPSYNC", "SYNCS", "DEPBAR", "LDGDEPBAR", "MEMBAR", "FENCE", "WARPGROUP", "NANOSLEEP", "ERRBAR", "ARRIVES", "ACQBULK", "UTMACMDFLUSH" },
        { "BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK", "YIELD" },
        { "MOV", "S2R", "CS2R", "LDC", "SHFL", "VOTE" } };
    /* the longer words begin like shorter ones of other groups */
    if (has(op, "LDGDEPBAR") || has(op, "UTMACMDFLUSH")) return SYNC;
    if (has(op, "ATOMS") || has(op, "LDGSTS")) return SHARED;
    for (int g = 0; g < GROUPS; g++)
        for (int w = 0; w < 20 && words[g][w]; w++)
            if (has(op, words[g][w])) return g;
    return *op == 'U' && group_of(op + 1) == INTEGER ? INTEGER : OTHER;
}
/* bytes of shared memory that a warp reads by LDS or LDSM, and what HGMMA reads for its four warps */
static long shared_bytes(const char *op) {
    const char *tail = strchr(op, ' '), *operand;
    char name[48];
    int rows, columns, depth;
    snprintf(name, sizeof name, "%.*s", tail ? (int)(tail - op) : 47, op);
    if (has(name, "LDSM")) return strstr(name, "88.4") ? 512 : strstr(name, "88.2") ? 256 : 128;
    if (has(name, "LDS"))
        return strstr(name, ".128") ? 512 : strstr(name, ".64") ? 256 : strstr(name, "16") ? 64 : strstr(name, "8") ? 32 : 128;
    if (!has(name, "HGMMA") || sscanf(name, "HGMMA.%dx%dx%d", &rows, &columns, &depth) != 3) return 0;
    operand = tail ? strchr(tail, ',') : NULL;
    return 2L * depth * columns + (operand && has(operand, ", gdesc") ? 2L * depth * rows : 0);
}
static void jump_of(instruction *at) {
    const char *op = bare(at->text), *target = strstr(op, "0x");
    int always = *at->text != '@';
    at->kind = GOES_ON;
    if (has(op, "BRA.DIV")) return;
    if (has(op, "BRA")) {
        const char *predicate = strchr(op, ' ');
        if (predicate && (strchr(predicate, 'P') != NULL)) always = 0;
        at->kind = always ? JUMPS : MAY_JUMP;
    } else if (has(op, "CALL")) at->kind = CALLS;
    else if (has(op, "BRX") || has(op, "JMX")) at->kind = INDIRECT;
    else if (has(op, "EXIT") || has(op, "RET")) at->kind = always ? ENDS : GOES_ON;
    if (at->kind != INDIRECT && at->kind != ENDS && at->kind != GOES_ON) {
        if (target) at->target = (unsigned)strtoul(target, NULL, 16);
        else at->kind = ENDS;
    }
}
static int index_of(unsigned address) {
    int low = 0, high = code_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (code[middle].address < address) low = middle + 1;
        else high = middle;
    }
    return code_count && code[low].address == address ? low : -1;
}
/* what may run after instruction i: up to two others */
static int after(int i, int to[2]) {
    int count = 0, target = code[i].kind == JUMPS || code[i].kind == MAY_JUMP || code[i].kind == CALLS ? index_of(code[i].target) : -1;
    if (target >= 0) to[count++] = target;
    if (code[i].kind != JUMPS && code[i].kind != ENDS && i + 1 < code_count) to[count++] = i + 1;
    return count;
}
static int stack[2 * CODE];
static void mark_reached(int from) {
    int depth = 0, to[2];
    if (code[from].reached) return;
    code[from].reached = 1;
    stack[depth++] = from;
    while (depth) {
        int count = after(stack[--depth], to);
        for (int i = 0; i < count; i++)
            if (!code[to[i]].reached) { code[to[i]].reached = 1; stack[depth++] = to[i]; }
    }
}
/* Tarjan's components, without recursion: in_loop[i] = 1 where i can be reached from itself */
static int order[CODE], low_link[CODE], on_stack[CODE], trail[CODE], step_of[CODE], open_nodes[CODE], in_loop[CODE];
static void mark_loops(void) {
    int counter = 0, opens = 0, to[2];
    memset(order, 0, sizeof order);
    memset(in_loop, 0, sizeof in_loop);
    memset(on_stack, 0, sizeof on_stack);
    for (int start = 0; start < code_count; start++) {
        int depth = 0;
        if (order[start] || !code[start].reached) continue;
        trail[0] = start;
        step_of[0] = 0;
        order[start] = low_link[start] = ++counter;
        open_nodes[opens++] = start;
        on_stack[start] = 1;
        while (depth >= 0) {
            int at = trail[depth], count = after(at, to);
            if (step_of[depth] < count) {
                int next = to[step_of[depth]++];
                if (!order[next]) {
                    order[next] = low_link[next] = ++counter;
                    open_nodes[opens++] = next;
                    on_stack[next] = 1;
                    trail[++depth] = next;
                    step_of[depth] = 0;
                } else if (on_stack[next] && order[next] < low_link[at]) low_link[at] = order[next];
                continue;
            }
            if (low_link[at] == order[at]) {
                int many = open_nodes[opens - 1] != at, node;
                do {
                    node = open_nodes[--opens];
                    on_stack[node] = 0;
                    in_loop[node] = many;
                } while (node != at);
            }
            if (--depth >= 0 && low_link[at] < low_link[trail[depth]]) low_link[trail[depth]] = low_link[at];
        }
    }
}
static void count_code(kernel *at) {
    int indirect = 0;
    if (!at || !code_count) return;
    for (int i = 0; i < code_count; i++) jump_of(&code[i]);
    mark_reached(0);
    for (int i = 0; i < code_count; i++) indirect |= code[i].kind == INDIRECT && code[i].reached;
    /* cases of a table: what nothing else reaches, before the branch to itself after the end */
    for (int i = 1; i < code_count && indirect && !(code[i].kind == JUMPS && code[i].target == code[i].address); i++)
        if (!code[i].reached && (code[i - 1].kind == JUMPS || code[i - 1].kind == INDIRECT || code[i - 1].kind == ENDS)) mark_reached(i);
    mark_loops();
    at->in_sass = 1;
    for (int i = 0; i < code_count; i++) {
        const char *op = bare(code[i].text);
        int group = group_of(op);
        if (has(op, "NOP") || !code[i].reached) continue;
        if (code[i].kind == JUMPS && code[i].target == code[i].address) continue; /* the fence after the end */
        at->instructions++;
        at->local += has(op, "LDL") || has(op, "STL");
        at->hgmma += has(op, "HGMMA");
        at->tma += has(op, "UTMALDG");
        if (!in_loop[i]) continue;
        at->in_loops++;
        at->group[group]++;
        at->warpsync += has(op, "WARPSYNC");
        at->bar += has(op, "BAR");
        at->hmma += group == TENSOR;
        at->shared_read += shared_bytes(op);
    }
}
static int read_sass(const char *path, const char *arch) {
    static char line[4096];
    char name[NAME], text[88];
    kernel *at = NULL;
    unsigned address;
    int found = 0;
    FILE *file = opened(path);
    if (!file) return 0;
    code_count = 0;
    while (fgets(line, sizeof line, file)) {
        char *word = strstr(line, "Function : ");
        if (word) {
            count_code(at);
            code_count = 0;
            word += strlen("Function : ");
            word[strcspn(word, "\r\n ")] = 0;
            plain_name(name, word);
            at = find(arch, name, 1);
            found += at != NULL;
        } else if (sscanf(line, " /*%x*/ %87[^;]", &address, text) == 2 && strchr(line, ';')) {
            if (code_count == CODE) { fprintf(stderr, "gpu_report: %s: more than %d instructions\n", name, CODE); fclose(file); return 0; }
            memset(&code[code_count], 0, sizeof code[0]);
            code[code_count].address = address;
            snprintf(code[code_count++].text, sizeof text, "%s", text);
        }
    }
    count_code(at);
    fclose(file);
    if (!found) fprintf(stderr, "gpu_report: %s names no function\n", path);
    return found;
}

/* ---- launches and occupancy */
/* Warps that fit a multiprocessor by registers (given to warps in steps of 256), shared memory (1 kB a block is the system's) and the limits of 64 warps
 * and 32 blocks, in percent of 64 */
static int occupancy_of(const kernel *at) {
    int warps = (at->threads + 31) / 32, room = (!strcmp(at->arch, "sm_80") ? 164 : 228) * 1024, blocks = 64 / warps;
    int registers = (at->registers * 32 + 255) / 256 * 256, by_registers = registers ? 65536 / registers / warps : blocks,
        by_shared = room / (at->dynamic_shared + at->fixed_shared + 1024);
    if (blocks > 32) blocks = 32;
    if (by_registers < blocks) blocks = by_registers;
    if (by_shared < blocks) blocks = by_shared;
    return (blocks * warps * 100 + 32) / 64;
}
/* lines "ARCH kernel threads shared grid prefill decode" and "ARCH total prefill decode" */
static int read_launches(const char *path) {
    char line[512], arch[12], name[NAME];
    int threads, shared, grid, found = 0;
    long prefill, decode;
    FILE *file = opened(path);
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%11s total %ld %ld", arch, &prefill, &decode) == 3) {
            printf("%s: molmoe-1b, bf16: 13 passes and prefill of 1922 tokens: %ld launches; a decode step: %ld\n", arch, prefill, decode);
            found = 1;
        } else if (sscanf(line, "%11s %47s %d %d %d %ld %ld", arch, name, &threads, &shared, &grid, &prefill, &decode) == 7) {
            kernel *at = find(arch, name, 0);
            if (!at) {
                printf("%s %s: launched, and not compiled\n", arch, name);
                failures++;
                continue;
            }
            at->prefill += prefill;
            at->decode += decode;
            if (threads > at->threads) at->threads = threads;
            if (shared > at->dynamic_shared) at->dynamic_shared = shared;
        }
    }
    fclose(file);
    if (!found) fprintf(stderr, "gpu_report: %s has no launches\n", path);
    return found;
}

/* ---- the table and the gates */
static double per_mma(const kernel *at) { return at->hmma ? (double)at->shared_read / at->hmma : 0; }
static void print_table(const char *arch) {
    printf("\n%-22s %7s %7s %7s %7s %5s %5s %5s %6s %6s  %-41s %8s %4s %6s %5s %5s\n", arch, "threads", "shared", "prefill", "decode", "regs", "spill",
           "occ %", "instr", "loops", "of the loops %: tens flt int glb shr syn", "warpsync", "bar", "B/MMA", "HGMMA", "TMA");
    for (int i = 0; i < kernel_count; i++) {
        const kernel *k = &kernels[i];
        char mix[64] = "";
        if (strcmp(k->arch, arch)) continue;
        for (int g = TENSOR; g <= SYNC; g++)
            snprintf(mix + strlen(mix), sizeof mix - strlen(mix), " %3d", k->in_loops ? (k->group[g] * 100 + k->in_loops / 2) / k->in_loops : 0);
        printf("%-22s %7d %7d %7ld %7ld %5d %5d %5d %6d %6d  %41s %8d %4d %6.0f %5d %5d\n", k->name, k->threads, k->dynamic_shared + k->fixed_shared,
               k->prefill, k->decode, k->registers, k->spilled, k->occupancy, k->instructions, k->in_loops, mix, k->warpsync, k->bar, per_mma(k),
               k->hgmma, k->tma);
    }
}
static void keep_gates(const char *path, const char *compiler) {
    FILE *file = fopen(path, "w");
    if (!file) { fprintf(stderr, "gpu_report: %s cannot be written\n", path); failures++; return; }
    fprintf(file, "# What `make gpu-report` holds the kernels against; `make gpu-report KEEP_GATES=1` writes it anew: read the difference.\n"
                  "# At most: registers, WARPSYNC, BAR and instructions in loops, bytes of shared memory for an MMA. At least: occupancy %%, HGMMA, TMA.\n"
                  "compiler %s\n# arch kernel registers occupancy warpsync bar loops bytes hgmma tma\n", compiler);
    for (int i = 0; i < kernel_count; i++) {
        const kernel *k = &kernels[i];
        fprintf(file, "%s %s %d %d %d %d %d %.0f %d %d\n", k->arch, k->name, k->registers, k->occupancy, k->warpsync, k->bar, k->in_loops, per_mma(k),
                k->hgmma, k->tma);
    }
    if (fclose(file)) failures++;
}
static void at_most(const kernel *k, const char *what, double is, double gate, int *worse) {
    if (is > gate) { printf("%s %s: %s %.0f, gate %.0f\n", k->arch, k->name, what, is, gate); ++*worse; }
}
static void at_least(const kernel *k, const char *what, double is, double gate, int *worse) {
    if (is < gate) { printf("%s %s: %s %.0f, gate %.0f\n", k->arch, k->name, what, is, gate); ++*worse; }
}
static int arch_is_here(const char *arch) {
    for (int i = 0; i < kernel_count; i++) if (!strcmp(kernels[i].arch, arch)) return 1;
    return 0;
}
/* returns 0: unreadable */
static int hold_gates(const char *path, const char *compiler) {
    char line[256], made_by[32] = "", arch[12], name[NAME];
    static int gated[KERNELS];
    int worse = 0, count = 0;
    FILE *file = opened(path);
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        double v[8];
        if (*line == '#' || sscanf(line, "compiler %31s", made_by) == 1) continue;
        if (sscanf(line, "%11s %47s %lf %lf %lf %lf %lf %lf %lf %lf", arch, name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 10) {
            fprintf(stderr, "gpu_report: %s: not a gate: %s", path, line);
            fclose(file);
            return 0;
        }
        count++;
        if (!arch_is_here(arch)) continue; /* GPU_ARCHS named fewer */
        kernel *k = find(arch, name, 0);
        if (!k) { printf("%s %s: has a gate, and is not compiled\n", arch, name); worse++; continue; }
        gated[k - kernels] = 1;
        at_most(k, "registers", k->registers, v[0], &worse);
        at_least(k, "occupancy %", k->occupancy, v[1], &worse);
        at_most(k, "WARPSYNC in loops", k->warpsync, v[2], &worse);
        at_most(k, "BAR in loops", k->bar, v[3], &worse);
        at_most(k, "instructions in loops", k->in_loops, v[4], &worse);
        at_most(k, "bytes of shared memory for an MMA", (long)(per_mma(k) + 0.5), v[5], &worse);
        at_least(k, "HGMMA", k->hgmma, v[6], &worse);
        at_least(k, "TMA", k->tma, v[7], &worse);
    }
    fclose(file);
    for (int i = 0; i < kernel_count; i++)
        if (!gated[i]) { printf("%s %s: has no gate\n", kernels[i].arch, kernels[i].name); worse++; }
    if (!strcmp(made_by, compiler)) failures += worse;
    printf("gates: %d, %d worse%s%s%s%s\n", count, worse, strcmp(made_by, compiler) ? "; not enforced: they are of nvcc " : "",
           strcmp(made_by, compiler) ? made_by : "", strcmp(made_by, compiler) ? ", this is " : "", strcmp(made_by, compiler) ? compiler : "");
    return 1;
}
int main(int argc, char **argv) {
    int keep = argc > 1 && !strcmp(argv[1], "--keep");
    char **word = argv + 1 + keep;
    int words = argc - 1 - keep;
    if (words < 6 || words % 3) { fprintf(stderr, "gpu_report [--keep] GATES COMPILER LAUNCHES ARCH PTXAS SASS [ARCH PTXAS SASS ..]\n"); return 2; }
    for (int i = 3; i < words; i += 3)
        if (!read_ptxas(word[i + 1], word[i]) || !read_sass(word[i + 2], word[i])) return 3;
    if (!read_launches(word[2])) return 3;
    for (int i = 0; i < kernel_count; i++) {
        kernel *k = &kernels[i];
        if (k->threads) k->occupancy = occupancy_of(k);
        if (k->registers >= 0 && k->in_sass && !k->spilled && !k->local) continue;
        printf("%s %s: %s\n", k->arch, k->name, k->registers < 0 ? "ptxas said nothing" : !k->in_sass ? "no SASS" : "spills, or holds an array in local memory");
        failures++;
    }
    for (int i = 3; i < words; i += 3) print_table(word[i]);
    if (keep && !failures) keep_gates(word[0], word[1]);
    if (!keep && !hold_gates(word[0], word[1])) return 3;
    return failures > 0;
}
