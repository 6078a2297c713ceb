"""vm.py BUILD COMMAND...: runs a command of this machine's own files under Debian's real-time kernel in a virtual machine.

The kernel of the host may have no CAN, no netem and no PREEMPT_RT; Debian's linux-image-rt-amd64 has all three. Nothing of it is
installed: the package is downloaded to BUILD/vm and unpacked there. The machine's root file system is the host's, read-only over 9p,
so that it runs the very files that were built, with the libraries and tools that are installed. What a command writes goes to a
memory file system at $TMPDIR. No acceleration is asked for: ten seconds to boot on an idle machine.

The exit code is the command's; 77 (skipped), with the reason, where such a machine cannot be had."""
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

SKIPPED = 77
MODULES = ["virtio_pci", "9p", "9pnet_virtio", "can", "can-raw", "can-dev", "vcan", "can-gw", "sch_netem", "veth"]
# what init does before the command: modules in the order of modules.dep, the host's files, interfaces
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /host
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
for m in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$m; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
/bin/busybox mount -t proc proc /host/proc
/bin/busybox mount -t sysfs sys /host/sys
/bin/busybox mount -t devtmpfs dev /host/dev
/bin/busybox mount -t tmpfs tmpfs /host/run
/bin/busybox mkdir -p /host/dev/shm /host/run/tmp
/bin/busybox mount -t tmpfs tmpfs /host/dev/shm
/bin/busybox ip link set lo up
/bin/busybox ip link add vcan0 type vcan
/bin/busybox ip link set vcan0 mtu 72 up
/bin/busybox cp /command /host/run/command
/bin/busybox chroot /host /bin/sh /run/command
echo "vm: exit $?"
/bin/busybox poweroff -f
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def kernel(folder):
    """Kernel and modules of the newest real-time kernel, unpacked in `folder`."""
    found = sorted(folder.glob("boot/vmlinuz-*-rt-amd64"))
    if found:
        return found[-1]
    folder.mkdir(parents=True, exist_ok=True)
    depends = subprocess.run(["apt-cache", "depends", "linux-image-rt-amd64"], capture_output=True, text=True).stdout
    name = re.search(r"Depends: (linux-image-\S+-rt-amd64)", depends)
    if not name:
        skip("there is no package linux-image-rt-amd64 here")
    got = subprocess.run(["apt-get", "download", name.group(1)], cwd=folder, capture_output=True, text=True)
    package = next(folder.glob("linux-image-*.deb"), None)
    if got.returncode != 0 or package is None:
        skip(f"{name.group(1)} cannot be downloaded: {got.stderr.strip()[-200:]}")
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    package.unlink()
    return sorted(folder.glob("boot/vmlinuz-*-rt-amd64"))[-1]


def module_files(root):
    """Files of MODULES and of what they need, each behind what it needs: a module says so in its own text."""
    files = {path.stem.replace("-", "_"): path for path in root.rglob("*.ko")}
    order = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return  # part of the kernel, or there
        needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for need in filter(None, needs.group(1).decode().split(",")):
            add(need)
        order.append(path)

    for name in MODULES:
        add(name)
    return order


def initrd(path, files):
    """A cpio archive ("newc") of {name: (mode, bytes)}."""
    out = bytearray()
    for number, (name, (mode, data)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], 1):
        fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    path.write_bytes(gzip.compress(bytes(out), 1))


def boot(build, command, seconds):
    """Runs the shell text `command` in the machine, in this folder; prints what it prints. Its exit code."""
    qemu, busybox = shutil.which("qemu-system-x86_64"), shutil.which("busybox")
    if not qemu or not busybox:
        skip("qemu-system-x86_64 and a static busybox are needed (apt-get install qemu-system-x86 busybox-static)")
    folder = build / "vm"
    image = kernel(folder)
    modules = module_files(folder / "lib/modules")
    plain, program = stat.S_IFREG | 0o644, stat.S_IFREG | 0o755
    files = {name: (stat.S_IFDIR | 0o755, b"") for name in ("bin", "modules")}
    files["init"] = (program, INIT.encode())
    files["bin/busybox"] = (program, pathlib.Path(busybox).read_bytes())
    files["modules/order"] = (plain, "\n".join(m.name for m in modules).encode())
    files.update({f"modules/{m.name}": (plain, m.read_bytes()) for m in modules})
    head = f"export TMPDIR=/run/tmp HOME=/run/tmp PATH={os.environ['PATH']}\ncd '{os.getcwd()}'\n"
    files["command"] = (plain, (head + command + "\n").encode())
    archive = folder / f"initrd-{os.getpid()}.gz"
    initrd(archive, files)
    line = [qemu, "-nographic", "-no-reboot", "-m", "1024", "-smp", "2", "-cpu", "max", "-kernel", image, "-initrd", archive,
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-nic", "none",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap", "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
    try:
        ran = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        text = ran.stdout.decode(errors="replace").replace("\r", "")
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace").replace("\r", "") + f"\nvm: no end after {seconds} s\n"
    finally:
        archive.unlink(missing_ok=True)
    print(text)
    code = re.search(r"^vm: exit (\d+)$", text, re.M)
    return int(code.group(1)) if code else 1


if __name__ == "__main__":
    sys.exit(boot(pathlib.Path(sys.argv[1]).resolve(), " ".join(sys.argv[2:]), 840))
