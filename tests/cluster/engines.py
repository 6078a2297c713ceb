"""The engines that clusters have, the real ones, on this machine alone: Slurm with one node (slurmctld, slurmd and munged with a
folder and ports of their own, no systemd)."""

import getpass
import os
import shutil
import socket
import subprocess
import time

CONF = """ClusterName=alone
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0,defer_batch=0
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MinJobAge=2
KillWait=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:4
"""


def program(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    """One node. `environment` is what its commands need."""
    NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")

    @classmethod
    def missing(cls):
        return [name for name in cls.NEEDED if not program(name)]

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        for name in ("state", "spool"):
            os.makedirs(os.path.join(folder, name))
        os.chmod(folder, 0o755)
        conf = os.path.join(folder, "slurm.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(folder=folder, user=getpass.getuser(), host=socket.gethostname().split(".")[0],
                                ports=free_ports(2), cores=os.cpu_count()))
        self.environment = {"SLURM_CONF": conf}
        with open(os.path.join(folder, "munge.key"), "wb") as f:
            os.chmod(f.name, 0o400)
            f.write(os.urandom(1024))
        self.start("munged", "--foreground", "--force", "--key-file", folder + "/munge.key", "--socket",
                   folder + "/munge.socket", "--pid-file", folder + "/munge.pid", "--seed-file", folder + "/munge.seed",
                   "--log-file", folder + "/munge.log")
        self.until(lambda: os.path.exists(folder + "/munge.socket"), "munged")
        self.start("slurmctld", "-D", "-i", "-f", conf)
        self.start("slurmd", "-D", "-f", conf)
        self.until(lambda: "idle" in self.command("sinfo", "--noheader", "--format=%t"), "the node")

    def start(self, name, *arguments):
        log = open(os.path.join(self.folder, name + ".out"), "ab")
        self.processes[name] = subprocess.Popen([program(name), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                env=dict(os.environ, **self.environment))
        log.close()

    def command(self, *words):
        done = subprocess.run(words, env=dict(os.environ, **self.environment), capture_output=True, text=True, check=False,
                              timeout=60)
        return done.stdout + done.stderr

    def until(self, fine, what):
        end = time.monotonic() + 60
        while not fine():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come up: {self.words()}")
            time.sleep(0.1)

    def words(self):
        said = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    said.append(f"{name}: {f.read()[-1500:]}")
        return "\n".join(said)

    def end(self, name):
        """As an operator does: slurmctld writes down what it knows. Killed it forgets the last seconds, and drains the node."""
        self.processes[name].terminate()
        self.processes[name].wait(timeout=60)

    def stop(self):
        self.command("scancel", "--user", getpass.getuser())
        for p in reversed(list(self.processes.values())):
            p.terminate()
        for p in self.processes.values():
            try:
                p.wait(timeout=10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
