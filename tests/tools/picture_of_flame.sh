#!/bin/bash
# picture_of_flame.sh: samples/page/flame.png, the flame chart of one request of the small model, for README.md. Run it on a quiet machine.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ]; then echo "picture_of_flame.sh: chromium is needed" >&2; exit 1; fi
./vlmprof run samples/tiny/pictures/000.png -p "Which word do you see?" --model samples/tiny/model --tier low --max_new_tokens 8 --ignore_eos --profile \
    --html "$work/page.html" >/dev/null || exit 1
# the section of the chart only
sed 's|</head>|<style>header,section:not(#flame),#flame h2{display:none}section{border:0!important;margin:0!important;padding:0!important}</style></head>|' \
    "$work/page.html" >"$work/flame.html"
python3 tests/support/browse.py "$CHROMIUM" "$work/flame.html" --picture samples/page/flame.png 1000 "${HEIGHT:-480}" || exit 1
ls -l samples/page/flame.png
