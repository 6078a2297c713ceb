#!/bin/sh
# Each public header compiles alone, as C17 and as C++ where a C++ compiler is there.
set -eu
root=$1
cc=$2
for h in "$root"/include/cardan/*.h; do
    name=cardan/$(basename "$h")
    printf '#include "%s"\n' "$name" | "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -I"$root/include" -fsyntax-only -x c -
    if command -v c++ >/dev/null; then
        printf '#include "%s"\n' "$name" | c++ -std=c++17 -Wall -Wno-pedantic -I"$root/include" -fsyntax-only -x c++ -
    fi
done
echo "$(ls "$root"/include/cardan/*.h | wc -l) headers compile alone"
