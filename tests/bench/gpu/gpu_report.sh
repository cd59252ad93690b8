#!/bin/bash
# gpu_report.sh LAUNCHES ARCH..: registers, spilled bytes, shared memory and theoretical occupancy of each kernel for each architecture, as a table, from
# what ptxas said (build/gpu/vlmprof_kernels.ARCH.o.log) and from how the kernels are launched at the real model's size (the program LAUNCHES).
# Occupancy: warps that fit a multiprocessor by registers (given to warps in steps of 256), shared memory (1 kB a block is the system's) and the
# limits of 64 warps and 32 blocks, in percent of 64. Exits 1 when a kernel spills or ptxas knows none of it.
B=${B:-build} launches=$1
shift
"$launches" > "$B/gpu/launches.txt" || exit 1
for arch in "$@"; do
    awk -v arch="$arch" '
        /Compiling entry function/ { match($0, /_Z[0-9]+/); n = substr($0, RSTART + 2, RLENGTH - 2); name = substr($0, RSTART + RLENGTH, n) }
        /bytes stack frame/ { spill[name] = $5 + $9; frame[name] = $1 }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); r = substr($0, RSTART + 5, RLENGTH - 5); s = 0
                                  if (match($0, /[0-9]+ bytes smem/)) s = substr($0, RSTART, RLENGTH) + 0
                                  print arch, name, r, spill[name] + frame[name], s }' "$B/gpu/vlmprof_kernels.$arch.o.log"
done > "$B/gpu/ptxas.txt"
awk -v archs="$*" '
    function floor(x) { return int(x) }
    function occupancy(arch, regs, shared, threads,    warps, by_regs, by_shared, blocks, room) {
        warps = floor((threads + 31) / 32)
        room = (arch == "sm_80" ? 164 : 228) * 1024
        by_regs = floor(65536 / (floor((regs * 32 + 255) / 256) * 256) / warps)
        by_shared = floor(room / (shared + 1024))
        blocks = floor(64 / warps)
        if (blocks > 32) blocks = 32
        if (by_regs < blocks) blocks = by_regs
        if (by_shared < blocks) blocks = by_shared
        return floor(blocks * warps * 100 / 64 + 0.5)
    }
    FNR == NR { regs[$1, $2] = $3; spill[$1, $2] = $4; fixed[$1, $2] = $5; spilled += $4 > 0; if (!known[$2]++) order[++kernels] = $2; next }
    $1 == "total" { printf "molmoe-1b, bf16: 13 passes and prefill of 1922 tokens: %d launches; a decode step: %d\n", $2, $3
                    n = split(archs, a, " ")
                    printf "%-22s %7s %7s %8s %8s", "kernel", "threads", "shared", "prefill", "decode"
                    for (i = 1; i <= n; i++) printf " | %-22s", a[i] ": regs spill occ %"
                    print ""; next }
    { used[$1] = 1
      printf "%-22s %7d %7d %8d %8d", $1, $2, $3 + fixed[a[1], $1], $5, $6
      for (i = 1; i <= n; i++) {
          if (!((a[i], $1) in regs)) { printf " | %-22s", "not compiled"; missing = 1; continue }
          printf " | %10d %5d %5d", regs[a[i], $1], spill[a[i], $1], occupancy(a[i], regs[a[i], $1], $3 + fixed[a[i], $1], $2)
      }
      print "" }
    END { for (i = 1; i <= kernels; i++) if (!(order[i] in used)) others = others " " order[i]
          print "not launched by the real model in bf16:" (others == "" ? " none" : others)
          if (spilled) print spilled " of the compiled kernels spill registers or hold arrays in local memory" > "/dev/stderr"
          exit spilled > 0 || missing || n == 0 }' "$B/gpu/ptxas.txt" "$B/gpu/launches.txt"
