#!/bin/sh
# tests/fuzz/run.sh BUILD SECONDS [TARGET ...]: runs the fuzz targets of a build with preset fuzz, each
# for so many seconds, from its seeds in corpus/<target> and what earlier runs found interesting.
# With SECONDS as /60 the time is shared: 60 s for all targets together, at least 1 s for each, and
# the inputs are drawn from a fixed seed: what make test says of a change is about that change.
# JOBS targets run side by side. Exit code 1 if one of them finds something; the input that did it is
# kept and named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

fuzz() { # BUILD SECONDS TARGET
    program=$1/tests/fuzz/fuzz_$3
    work=$1/fuzzing/$3
    target=$3
    [ -x "$program" ] || {
        echo "run.sh: no $program, expected it from cmake --build $1 --target fuzzers" >&2
        return 2
    }
    mkdir -p "$work/corpus" "$work/findings" "$work/tmp"
    set -- -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/findings/"
    [ -z "${FUZZ_SEED:-}" ] || set -- "$@" -seed="$FUZZ_SEED"
    [ ! -f "$here/fuzz_$target.dict" ] || set -- "$@" -dict="$here/fuzz_$target.dict"
    if TMPDIR="$work/tmp" "$program" "$@" "$work/corpus" "$here/corpus/$target" >"$work/log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
        covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/log" | tail -n 1)
        echo "$target: nothing found in $runs inputs, $covered edges covered"
    else
        grep -E 'ERROR|runtime error|SUMMARY|Test unit written' "$work/log" || tail -n 20 "$work/log"
        echo "$target: FOUND something; the whole story is in $work/log"
        echo "    again: $program $(sed -n 's/.*Test unit written to //p' "$work/log" | tail -n 1)"
        return 1
    fi
}

if [ "$1" = --one ]; then
    shift
    fuzz "$@"
    exit
fi
build=$(cd "$1" && pwd)
seconds=$2
shift 2
if [ $# -eq 0 ]; then
    set -- $(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
fi
case $seconds in
/*)
    seconds=$((${seconds#/} / $#))
    export FUZZ_SEED=1
    [ "$seconds" -gt 0 ] || seconds=1
    ;;
esac
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -n 1 sh "$0" --one "$build" "$seconds" || exit 1
