#!/bin/sh
# A hybrid car whose engine and electric machine stand on two benches, joined over a bad network with
# the rest of the car, which is simulated: make demo
# CARDAN_BUILD names another build folder than build/. On a terminal the page stays until Ctrl-C.
set -eu
cd "$(dirname "$0")/../.."
here=$(pwd)/examples/prototype
build=$(cd "${CARDAN_BUILD:-build}" && pwd)
cardan=$build/cardan
out=$build/demo
stop=${CARDAN_DEMO_STOP:-24}
files=${CARDAN_BUILD:-build}/demo
keep=
[ ! -t 1 ] || keep=--ui-keep
rm -rf "$out"
mkdir -p "$out"

say() { printf '%s\n' "$@"; }
shown() { sed 's/^/     /'; }
quit() {
    trap - EXIT INT TERM
    kill $pids 2>/dev/null || true
    wait 2>/dev/null || true
}
pids=
trap quit EXIT
trap 'exit 130' INT TERM

say "Cardan: a hybrid car, half of it real. Here the benches are emulated, each a process of its own." \
    ""
cycle=$build/cycles/wltc3b.csv
last=1800
name=WLTC
if [ ! -f "$cycle" ]; then
    cycle=$(pwd)/examples/powertrain/nedc.csv
    last=1180
    name=NEDC
fi
say "1. The car as models alone, before any bench: the $name, as fast as this computer can" \
    "   cardan run hybrid.yaml" ""
sed -e "s|\.\./\.\./build/|$build/|" -e "s|nedc.csv|$cycle|" -e "s|stop: 1180 s|stop: $last s|" \
    examples/powertrain/hybrid.yaml >"$out/hybrid.yaml"
"$cardan" run "$out/hybrid.yaml" --output "$out/hybrid.mf4" 2>&1 | sed -n '/^time/p; /^speed/p' | shown
"$cardan" plot "$out/hybrid.mf4" --variables vehicle.speed --variables engine.torque \
    --variables machine.torque --variables battery.soc --title "Hybrid car on the $name" \
    --output "$out/hybrid.svg" >/dev/null

say "" \
    "2. What latency does, and what helps: the experiment of Baumann (2024)" \
    "   cardan bench experiment" ""
"$cardan" bench experiment --output "$out/experiment" | shown

say "" \
    "3. Two benches, and a network that is late by 25 ms each way and loses some packets" \
    "   cardan bench ice, cardan bench em, cardan dcp emulate" ""
cd "$out"
cp "$here"/drive.csv "$here"/*.cir "$here"/machine_twin.yaml .
bench() { # KIND PORT
    "$cardan" bench "$1" --listen "udp://127.0.0.1:$2" --write-description "$1.dcpx" --speed-up 400 \
        >>"$1.log" 2>&1 &
    eval "$1=$!"
    pids="$pids $!"
}
bench ice 9201
bench em 9202
"$cardan" dcp emulate --listen udp://127.0.0.2:9201 --to udp://127.0.0.1:9201 \
    --listen udp://127.0.0.2:9202 --to udp://127.0.0.1:9202 \
    --delay '25 ms' --jitter '0.25 ms' --loss 0.002 --seed 1 >network.log 2>&1 &
network=$!
pids="$pids $network"
until [ -s ice.log ] && [ -s em.log ] && [ -s network.log ]; do sleep 0.1; done
sed -e "s|\.\./\.\./build/|$build/|" -e 's|udp://127.0.0.1|udp://127.0.0.2|' \
    -e "s|stop: 30 s|stop: $stop s|" "$here/prototype.yaml" >prototype.yaml
say "     $(head -n 1 ice.log) (engine)" "     $(head -n 1 em.log) (machine)"

say "" \
    "4. A test that a bench cannot do is refused before anything turns" \
    "   cardan check too-fast.yaml" ""
sed 's|case: "speed 0..5000 1/min; torque|case: "speed 0..9000 1/min; torque|' prototype.yaml >too-fast.yaml
"$cardan" check too-fast.yaml 2>&1 | fold -s -w 95 | shown || true

say "" \
    "5. Registration, checklist, conditioning (400 times faster than life), then $stop s in real time." \
    "   After 6 s somebody pulls the plug of the machine's bench; its model stands in until it is back." \
    "   cardan run prototype.yaml --ui --session-record session.csv" ""
: >run.log
"$cardan" run prototype.yaml --ui $keep --session-record session.csv --output prototype.mf4 \
    >run.log 2>&1 &
run=$!
pids="$pids $run"
until grep -q '^live' run.log || ! kill -0 $run 2>/dev/null; do sleep 0.1; done
sed -n 's/^live */     the page: /p' run.log
until grep -q 'phase run' em.log || ! kill -0 $run 2>/dev/null; do sleep 0.2; done
say "     both benches run"
sleep 6
kill -9 "$em" 2>/dev/null || say "     (it was gone already)"
say "     the machine's bench is gone"
sleep 1
bench em 9202
code=0
if [ -n "$keep" ]; then
    until grep -q 'page stays' run.log || ! kill -0 $run 2>/dev/null; do sleep 0.2; done
    kill -0 $run 2>/dev/null || wait $run || code=$?
else
    wait $run || code=$?
fi
say ""
sed -n '/^time /,/^standby /p; /^pace /,/^system /p; /^  link /,/^  unit /p; /^  coupling /,/^  connection /p' run.log |
    sed '/^  unit /d; /^  connection /d; /^system /d' | shown
if [ $code -ne 0 ]; then
    say "" "The run has failed, exit code $code:"
    shown <run.log
    exit $code
fi
"$cardan" report prototype.mf4 --output prototype.html >/dev/null
"$cardan" bench session session.csv --results prototype.mf4 --variables vehicle.speed \
    --output session.svg >session.txt
kill -INT $network
wait $network || true

say "" \
    "6. How the machine's bench came back, and how it stopped: cardan bench session" ""
sed -n '/em .*\(conditioned\|run\|down\|safe\)/p' session.txt | tail -n 14 | shown
say "" \
    "7. What became of every packet: the network's own count" ""
sed '1,/there/{/there/!d}' network.log | shown
say "" \
    "Files:" \
    "  $files/prototype.html            report of the run: open it in a browser" \
    "  $files/experiment/report.html    tables and plots of the experiment, with the recordings beside it" \
    "  $files/session.svg               states of master and benches (Rautenberg 2023, Figure 7)" \
    "  $files/hybrid.svg                the car on the cycle" \
    "  $files/prototype.mf4             everything that was measured and simulated, MDF 4.10" \
    "  $files/prototype.yaml            the system description" \
    "  $files/{ice,em,network,run}.log  what the processes said"
if [ -n "$keep" ]; then
    say "" "The page stays until Ctrl-C: $(sed -n 's/^live *http/http/p' run.log)"
    trap 'exit 0' INT TERM
    wait $run || true
fi
