#!/bin/sh
# again.sh DIR: what failed in the last ctest of the build DIR once more, each test alone. Tests of
# processes and terminals that run beside others may fail for want of a processor; code that is wrong
# fails alone, too. What had to be tried again is told, and more than five is no accident.
set -eu
failed=$1/Testing/Temporary/LastTestsFailed.log
[ -s "$failed" ] || exit 1
count=$(wc -l <"$failed")
[ "$count" -le 5 ] || { echo "cardan: $count tests failed" >&2; exit 1; }
names=$(sed 's/^[0-9]*://' "$failed" | tr '\n' ' ')
echo "cardan: failed beside others, tried again alone: $names" >&2
ctest --test-dir "$1" --output-on-failure --rerun-failed
echo "cardan: passed only when tried alone: $names" >&2
