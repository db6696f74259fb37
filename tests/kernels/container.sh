#!/bin/bash
# Run a command in a systemd of its own, as PID 1 of new namespaces over a copy of this machine's files in memory.
# usage: container.sh FOLDER COMMAND...; FOLDER is shared; the command runs as a unit, then the machine ends.
# CONTAINER_LOWER names another root than this machine's files.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
shared=$(realpath "$1")
shift

if [[ ${CONTAINER_STAGE:-} != inside ]]; then
    export CONTAINER_STAGE=inside
    exec unshare --pid --fork --kill-child --mount --cgroup --uts --ipc "$here/container.sh" "$shared" "$@"
fi

mount --make-rprivate /
mount -t proc proc /proc
[[ ! -d /sys/fs/cgroup ]] || umount --recursive /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
layer=$(mktemp -d /tmp/specmine-systemd.XXXX)
mount -t tmpfs layer "$layer"
mkdir "$layer"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=${CONTAINER_LOWER:-/},upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
root=$layer/root
for each in dev proc sys; do mount --rbind "/$each" "$root/$each"; done
for each in run tmp; do mount -t tmpfs "$each" "$root/$each"; done
mkdir -p "$root/run/shared" "$root/tmp/old"
mount --bind "$shared" "$root/run/shared"
cd "$root"
"$here/prepare_systemd.sh" "$root" "$@"
pivot_root . tmp/old
umount --lazy /tmp/old
export container=specmine
exec /lib/systemd/systemd --system --show-status=0 </dev/null
