#!/bin/bash
# Runs a Slurm of one node, with its own configuration, key and ports, in the folder that is named; until it gets SIGTERM.
# FOLDER/ready appears when it takes jobs. Jobs find it by SLURM_CONF=FOLDER/slurm.conf.
set -u
folder=$1
export PATH=$PATH:/usr/sbin:/usr/local/sbin
mkdir -p "$folder"/{state,spool,munge} && chmod 700 "$folder/munge"
exec >"$folder/log" 2>&1
# Jobs that still run would outlive the daemons.
end() {
  trap '' TERM INT EXIT
  timeout 5 scancel --user="$(id -un)"
  for _ in $(seq 50); do [[ -z $(timeout 5 squeue --noheader) ]] && break; sleep 0.2; done
  kill $(jobs -p)
  wait
  exit 0
}
trap end TERM INT EXIT

(umask 077; head -c 128 /dev/urandom >"$folder/munge/key")
munged --foreground --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
  --log-file="$folder/munge/log" --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" &

port=$((20000 + $$ % 20000))
# Requeued jobs wait until their credential has expired, two minutes unless it is said.
cat >"$folder/slurm.conf" <<CONF
ClusterName=tilepilot
SlurmctldHost=localhost
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
KillWait=2
NodeName=localhost CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=localhost Default=YES MaxTime=INFINITE State=UP
CONF
# Older ones do without control groups by themselves.
version=$(slurmd -V)
version=${version##* }
((${version%%.*} >= 23)) && echo 'CgroupPlugin=disabled' >"$folder/cgroup.conf"
export SLURM_CONF=$folder/slurm.conf
for _ in $(seq 100); do [[ -S $folder/munge/socket ]] && break; sleep 0.1; done
slurmctld -D -i &
slurmctld=$!
slurmd -D -N localhost &
slurmd=$!
for _ in $(seq 300); do
  { kill -0 $slurmctld && kill -0 $slurmd; } 2>/dev/null || exit 1
  sinfo --noheader --format=%T 2>/dev/null | grep -q idle && break
  sleep 0.2
done
touch "$folder/ready"
wait
