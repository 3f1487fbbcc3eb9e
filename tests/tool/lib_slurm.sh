# A Slurm cluster of two nodes on this machine, for scripts that begin with
#
#   source "$(dirname "${BASH_SOURCE[0]}")/lib_slurm.sh"
#   enter_cluster "$@"
#
# What follows runs on the controller, "ctl", with srun, sbatch and scancel at hand. The nodes are
# "node1" and "node2", each in a network and host name of its own; `on_node NAME COMMAND...` runs
# something there. Everything lives in namespaces (processes, mounts, network) that end with the
# script, so nothing is left behind and nothing of the machine's own Slurm or network is touched.

cluster_network=10.77.0

# Ends the test as skipped.
cannot_test() {
  echo "SKIPPED: $1" >&2
  exit 77
}

# Starts the script again inside of new namespaces, and the cluster in there.
enter_cluster() {
  if [ "${IN_CLUSTER:-}" != 1 ]; then
    local program
    for program in slurmctld slurmd srun munged mungekey ip; do
      PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
        cannot_test "$program is missing: install slurm-wlm, munge and iproute2"
    done
    unshare --mount --net --uts --ipc true 2>/dev/null ||
      cannot_test "this user cannot make namespaces; run the test as root"
    IN_CLUSTER=1 PATH=$PATH:/usr/sbin exec unshare --mount --net --uts --ipc --pid --fork \
      --mount-proc --kill-child bash "$0" "$@"
  fi
  mount --make-rprivate /
  mount -t tmpfs none /run
  mount -t tmpfs none /dev/shm
  cluster=/run/cluster
  mkdir -p "$cluster/state" /run/netns /run/munge
  connect_nodes
  start_munge
  write_configuration
  start_daemons
}

on_node() {
  local node=$1
  shift
  nsenter --net="/run/netns/$node" --uts="$cluster/$node.uts" "$@"
}

connect_nodes() {
  hostname ctl
  ip link set lo up
  ip link add bridge0 type bridge
  ip addr add "$cluster_network.254/24" dev bridge0
  ip link set bridge0 up
  printf '%s\n' "127.0.0.1 localhost" "$cluster_network.254 ctl" "$cluster_network.1 node1" \
    "$cluster_network.2 node2" >"$cluster/hosts"
  mount --bind "$cluster/hosts" /etc/hosts
  connect_node 1
  connect_node 2
}

connect_node() {
  local node=node$1
  ip netns add "$node"
  touch "$cluster/$node.uts"
  unshare --uts="$cluster/$node.uts" hostname "$node"
  ip link add "link$1" type veth peer name eth0 netns "$node"
  ip link set "link$1" master bridge0 up
  on_node "$node" ip addr add "$cluster_network.$1/24" dev eth0
  on_node "$node" ip link set eth0 up
  on_node "$node" ip link set lo up
}

start_munge() {
  mungekey --create --keyfile="$cluster/munge.key"
  munged --force --key-file="$cluster/munge.key" --seed-file="$cluster/munge.seed" \
    --pid-file="$cluster/munged.pid" --log-file="$cluster/munged.log"
}

write_configuration() {
  export SLURM_CONF=$cluster/slurm.conf
  cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=ctl($cluster_network.254)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmdLogFile=$cluster/slurmd-%n.log
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdParameters=config_overrides
NodeName=node1 NodeAddr=$cluster_network.1 CPUs=8 State=UNKNOWN
NodeName=node2 NodeAddr=$cluster_network.2 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
END
}

start_daemons() {
  slurmctld
  on_node node1 slurmd -N node1
  on_node node2 slurmd -N node2
  local attempt
  for attempt in {1..100}; do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return
    sleep 0.1
  done
  echo "the Slurm cluster does not start:" >&2
  sinfo -R >&2 || true
  tail -n 20 "$cluster"/*.log >&2
  exit 1
}

# The number of the job that runs. The controller may need a moment to tell.
running_job() {
  local id
  for _ in $(seq 100); do
    id=$(squeue -h -t running -o %i)
    [ -z "$id" ] || break
    sleep 0.1
  done
  echo "$id"
}
