#!/bin/bash
# picture_of_report.sh [FOLDER]: samples/report.png, the top of a report's page for README.md. FOLDER holds result files (default: build/demo of make demo).
cd "$(dirname "$0")/../.." || exit 1
folder=${1:-build/demo}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ]; then echo "picture_of_report.sh: chromium is needed" >&2; exit 1; fi
[ -d "$folder" ] || make demo || exit 1
./vlmprof report "$folder" --html="$work/page.html" || exit 1
python3 tests/support/browse.py "$CHROMIUM" "$work/page.html" --picture samples/report.png 1000 "${HEIGHT:-1250}" || exit 1
ls -l samples/report.png
