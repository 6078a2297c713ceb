#!/bin/sh
# tests/fuzz/run.sh BUILD SECONDS [TARGET ...]: runs the fuzz targets of a build with preset fuzz, each
# for so many seconds, from its seeds in corpus/<target> and what earlier runs found interesting.
# Exit code 1 if one of them finds something; the input that did it is kept and named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
seconds=$2
shift 2
if [ $# -eq 0 ]; then
    set -- $(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
fi
found=0
for target in "$@"; do
    program=$build/tests/fuzz/fuzz_$target
    [ -x "$program" ] || {
        echo "run.sh: no $program, expected it from cmake --build $build" >&2
        exit 2
    }
    work=$build/fuzzing/$target
    mkdir -p "$work/corpus" "$work/findings" "$work/tmp"
    set -- -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/findings/"
    [ ! -f "$here/fuzz_$target.dict" ] || set -- "$@" -dict="$here/fuzz_$target.dict"
    if TMPDIR="$work/tmp" "$program" "$@" "$work/corpus" "$here/corpus/$target" >"$work/log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
        covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/log" | tail -n 1)
        echo "$target: nothing found in $runs inputs, $covered edges covered"
    else
        found=1
        grep -E 'ERROR|runtime error|SUMMARY|Test unit written' "$work/log" || tail -n 20 "$work/log"
        echo "$target: FOUND something; the whole story is in $work/log"
        echo "    again: $program $(sed -n 's/.*Test unit written to //p' "$work/log" | tail -n 1)"
    fi
done
exit $found
