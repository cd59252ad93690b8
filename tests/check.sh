# check.sh, read by the test scripts: a work folder that goes when they end, and check, which counts in passed and failed.
unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE SLURM_STEP_ID # no launcher of this machine is meant
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() { # check NAME COMMAND...: the command must succeed; what it says is in $work/out
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then passed=$((passed + 1)); return 0; fi
    failed=$((failed + 1))
    echo "FAILED $name"
    head -n 4 "$work/out"
    return 1
}
