#!/bin/bash
# slow: the reader of make gpu-report, which needs nvcc
# test_gpu_report.sh: the reader of SASS behind `make gpu-report`, on a short sample whose numbers were counted by hand; each number made worse, alone,
# must be seen; and the mistakes that planted.sh plants still have their places. Ends with a count line.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
. tests/check.sh
report=$B/emulated/gpu_report
cp tests/bench/gpu/sample/sample.* "$work"
run() { "$report" "$work/sample.gates" "${release:-13.0}" "$work/sample.launches" sm_90a "$work/sample.ptxas" "$work/sample.sass"; }
exits() { # exits STATUS PATTERN: what run does now
    run >"$work/said" 2>&1
    [ $? -eq "$1" ] && grep -qE "$2" "$work/said" && return 0
    cat "$work/said"
    return 1
}
worse() { # worse NAME FILE SED PATTERN: after this change of a sample, run fails and says so
    cp "tests/bench/gpu/sample/$2" "$work/before"
    sed "$3" "$work/before" >"$work/$2"
    check "$1: the sample is changed" bash -c '! cmp -s "$1" "$2"' - "$work/before" "$work/$2"
    check "$1 is seen" exits 1 "$4"
    cp "$work/before" "$work/$2"
}

check "the sample keeps its gates" exits 0 '^gates: 2, 0 worse$'
# threads, shared, launches; registers, spills, occupancy; instructions, those of loops and their mix; WARPSYNC, BAR, bytes, HGMMA, TMA. The path of
# warps that went apart and the branch behind the end are not counted.
check "each number of the first kernel" grep -qE '^k_tiles +256 +67584 +10 +0 +96 +0 +25 +14 +8 +25 +13 +0 +0 +25 +13 +0 +1 +512 +0 +1$' "$work/said"
check "each number of the second kernel: cases of a table are reached" grep -qE '^k_wgmma +0 +0 +0 +0 +40 +0 +0 +7 +3 +33 +0 +0 +0 +0 +33 +1 +0 +10240 +2 +0$' "$work/said"
worse "a register more" sample.ptxas 's/Used 96/Used 97/' 'k_tiles: registers 97, gate 96'
worse "a spill that ptxas reports" sample.ptxas '0,/0 bytes spill stores/s//8 bytes spill stores/' 'k_tiles: spills'
worse "a store to local memory" sample.sass 's/FADD R3, R3, R4/STL [R1], R4    /' 'k_tiles: spills'
worse "less occupancy" sample.launches 's/65536/131072/' 'k_tiles: occupancy % 13, gate 25'
worse "a WARPSYNC that moved into the loop" sample.sass 's/FADD R3, R3, R4/WARPSYNC.ALL   /' 'k_tiles: WARPSYNC in loops 1, gate 0'
worse "a BAR that moved into the loop" sample.sass 's/FADD R3, R3, R4/BAR.SYNC 0x1   /' 'k_tiles: BAR in loops 2, gate 1'
worse "a longer loop" sample.sass 's/BRA 0x40 /BRA 0x20 /' 'k_tiles: instructions in loops 10, gate 8'
worse "more shared memory for an MMA" sample.sass 's/FADD R3, R3, R4/LDS.64 R6, [R3]/' 'k_tiles: bytes of shared memory for an MMA 640, gate 512'
worse "a product that is no longer HGMMA" sample.sass 's/HGMMA.64x128x16/HMMA.16816/' 'k_wgmma: HGMMA 1, gate 2'
worse "a copy that is no longer TMA" sample.sass 's/UTMALDG.3D/LDGSTS.E/' 'k_tiles: TMA 0, gate 1'
worse "a kernel without a gate" sample.gates '/k_wgmma/d' 'k_wgmma: has no gate'
worse "a gate without a kernel" sample.gates 's/k_wgmma/k_gone/' 'k_gone: has a gate, and is not compiled'
worse "a kernel that ptxas does not know" sample.ptxas 's/k_wgmma/k_other/' 'k_wgmma: ptxas said nothing'
worse "a kernel without SASS" sample.sass 's/k_wgmma/k_other/' 'k_wgmma: no SASS'
worse "a launch of what is not compiled" sample.launches 's/k_tiles/k_gone/' 'k_gone: launched, and not compiled'
sed -i 's/Used 96/Used 97/' "$work/sample.ptxas"
release=12.8 check "another compiler's numbers are shown, and not enforced" exits 0 '^gates: 2, 1 worse; not enforced: they are of nvcc 13.0, this is 12.8$'
check "gates are written" bash -c '"$1" --keep "$2/new" 13.0 "$2/sample.launches" sm_90a "$2/sample.ptxas" "$2/sample.sass" && mv "$2/new" "$2/sample.gates"' - "$report" "$work"
check "and hold what they were made of" exits 0 '^gates: 2, 0 worse$'
check "they say what the sample's say, but for that register" bash -c \
    'sed s/97/96/ "$1" | grep -v "^#" | cmp - <(grep -v "^#" tests/bench/gpu/sample/sample.gates)' - "$work/sample.gates"
echo "nonsense" >>"$work/sample.gates"
check "a line that is no gate is an error" exits 3 'not a gate: nonsense'
: >"$work/sample.sass"
check "SASS without a function is an error" exits 3 'names no function'
check "a file that is missing is an error" bash -c '"$1" a b c d /nonexistent f; [ $? -eq 3 ]' - "$report"
check "Hopper's kernels are held to wgmma and TMA" bash -c '[ "$(grep -cE "^sm_90a k_(gate_up|down)_wgmma[0-9]+ .* [1-9][0-9]* [1-9][0-9]*$" tests/bench/gpu/gates.txt)" = 2 ]'
check "each planted mistake has its place in the GPU code" tests/planted.sh --places
check "a wrong call is an error" bash -c '"$1" x; [ $? -eq 2 ]' - "$report"
echo "test_gpu_report: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
