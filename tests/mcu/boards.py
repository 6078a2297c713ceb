"""Programs for the host and for emulated Cortex-M boards, built out of the same sources."""
import os
import shutil
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = ["-std=c17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
BOARDS = {
    "m4": ("mps2-an386", ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]),
    "m7": ("mps2-an500", ["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"]),
}


def have_boards():
    return bool(shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"))


def checked(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError("%s\n%s%s" % (" ".join(command), done.stdout[-2000:], done.stderr[-4000:]))
    return done.stdout


def build(target, sources, output, flags=(), flash=4 << 20, ram=4 << 20, stack=16 << 10):
    """target: host, m4 or m7"""
    common = [os.path.join(HERE, "board_number.c"), "-I", HERE, *COMMON, *flags]
    if target == "host":
        compiler = os.environ.get("CC", "cc")
        checked([compiler, *sources, os.path.join(HERE, "board_host.c"), *common, "-lm", "-o", output])
        return
    memory = ["-Wl,--defsym=FLASH_SIZE=%d,--defsym=RAM_SIZE=%d,--defsym=STACK_SIZE=%d" % (flash, ram, stack)]
    checked(["arm-none-eabi-gcc", *BOARDS[target][1], "-mthumb", "-ffunction-sections", "-fdata-sections",
             *sources, os.path.join(HERE, "board_mps2.c"), *common, "-nostartfiles", "-T",
             os.path.join(HERE, "mps2.ld"), *memory, "-Wl,--gc-sections", "-Wl,-Map=%s.map" % output, "-lm",
             "-o", output])


def command(target, program):
    if target == "host":
        return [program]
    return ["qemu-system-arm", "-M", BOARDS[target][0], "-display", "none", "-monitor", "none", "-serial", "null",
            "-chardev", "stdio,id=out,signal=off", "-semihosting-config", "enable=on,target=native,chardev=out", "-icount", "shift=0", "-kernel", program]


def run(target, program, timeout=300):
    return checked(command(target, program), timeout=timeout, stdin=subprocess.DEVNULL)


def numbers(line):
    return [struct.unpack(">d", bytes.fromhex(word))[0] for word in line.split() if len(word) == 16]


def sizes(program):
    """Bytes of flash and of memory, the stack aside."""
    text, data, bss = map(int, checked(["arm-none-eabi-size", program]).splitlines()[1].split()[:3])
    return text + data, data + bss
