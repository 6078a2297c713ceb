#!/bin/sh
# Two hosts and a bad link between them, on one machine: three network namespaces, the emulator in
# the middle one. Between the two hosts there is no route, so all that passes passes the emulator.
# Needs root, and the FMUs of the examples (make).
#
#   sudo examples/dcp/two_hosts.sh [folder of the FMUs] [cardan]
set -eu
fmus=$(realpath "${1:-build/fmus}/fmi2")
cardan=$(realpath "$(command -v "${2:-build/cardan}")")
folder=$(mktemp -d)
id=$$ # so that several may run at once
desk=cardan-desk-$id link=cardan-link-$id bench=cardan-bench-$id

clean() {
    trap - EXIT INT TERM
    kill $slave $emulator 2>/dev/null || true
    wait
    for n in $desk $link $bench; do ip netns delete $n 2>/dev/null || true; done
    rm -rf "$folder"
}
slave= emulator=
trap clean EXIT
trap 'exit 1' INT TERM

# desk 10.77.1.2 -- 10.77.1.1 link 10.77.2.1 -- 10.77.2.2 bench
for n in $desk $link $bench; do
    ip netns add $n
    ip -n $n link set lo up
done
connect() { # namespace, its address, address of the link's side
    ip -n $link link add "to-$4" type veth peer name eth0 netns "$1"
    ip -n $link address add "$3/24" dev "to-$4"
    ip -n $link link set "to-$4" up
    ip -n "$1" address add "$2/24" dev eth0
    ip -n "$1" link set eth0 up
}
connect $desk 10.77.1.2 10.77.1.1 desk
connect $bench 10.77.2.2 10.77.2.1 bench

cd "$folder"
ip netns exec $bench "$cardan" dcp slave "$fmus/rot_2.fmu" --plain --listen udp://10.77.2.2:8080 \
    --write-description second.dcpx > slave.log &
slave=$!
until grep -q listening slave.log; do kill -0 $slave; sleep 0.05; done
ip netns exec $link "$cardan" dcp emulate --plain --listen udp://10.77.1.1:8080 --to udp://10.77.2.2:8080 \
    --delay "5 ms" --jitter "1 ms" --loss 0.01 --seed 1 > link.log &
emulator=$!
until grep -q listening link.log; do kill -0 $emulator; sleep 0.05; done

cat > pair.yaml <<END
cardan: 1
units:
  first: { fmu: $fmus/rot_1.fmu }
  second:
    dcp: udp://10.77.1.1:8080        # the emulator, which looks like the bench
    description: second.dcpx
    session: { mode: srt, plain: true } # nobody else is on these networks
connections:
  - second.omega2 -> first.omega2
  - first.tau -> second.tau
run: { step: 10 ms, stop: 2 s }
results: pair.csv
END
ip netns exec $desk "$cardan" dcp scan udp://10.77.1.1:8080
ip netns exec $desk "$cardan" run pair.yaml
kill $emulator
wait $emulator
cat link.log
