#!/bin/bash
# picture_of_report.sh [RESULTS...]: samples/page/report.png, the top of a report's page for README.md. RESULTS are folders or files of results; by default
# those of the small model's own drawings in build/demo, which make demo measures.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ]; then echo "picture_of_report.sh: chromium is needed" >&2; exit 1; fi
if [ $# -eq 0 ]; then
    [ -d build/demo ] || make demo || exit 1
    set -- build/demo/heldout*.json
fi
./vlmprof report "$@" --html="$work/page.html" || exit 1
python3 tests/support/browse.py "$CHROMIUM" "$work/page.html" --picture samples/page/report.png 1000 "${HEIGHT:-1420}" || exit 1
ls -l samples/page/report.png
