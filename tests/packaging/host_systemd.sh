#!/bin/bash
# A systemd in the host's process namespace, over the files of a root: the kernel counts by the host's process ids, so
# what it starts can count calls, which nothing that a systemd starts as PID 1 of a namespace can. It is a manager of
# the user root: its units run as whom they name, with the sandbox that they ask for.
# usage: host_systemd.sh ROOT; it ends with its standard input.
set -euo pipefail
root=$1
if [[ ${STAGE:-} != inside ]]; then
    STAGE=inside exec unshare --mount "$0" "$root"
fi
mount --make-rprivate /
umount --recursive "$root/sys/fs/cgroup" 2>/dev/null || true
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
group=$root/sys/fs/cgroup/specmine-clean-root
mkdir -p "$group"
trap 'find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true' EXIT
mkdir -p "$root"/run/systemd/system "$root"/run/units
for each in basic shutdown default sysinit multi-user; do printf '[Unit]\nDefaultDependencies=no\n' >"$root/run/units/$each.target"; done
# A manager of a user does not hear units of other users. That they are ready, and live, is asked for in package_life.sh
mkdir -p "$root/run/units/specmined.service.d"
printf '[Service]\nType=exec\nWatchdogSec=0\n' >"$root/run/units/specmined.service.d/unheard.conf"
mkdir -p "$root/etc/systemd/user.conf.d" # there is no journal: what units say goes where this script's output goes
printf '[Manager]\nDefaultStandardOutput=inherit\nDefaultStandardError=inherit\n' >"$root/etc/systemd/user.conf.d/said.conf"
(
    echo "$BASHPID" >"$group/cgroup.procs"
    exec chroot "$root" env -i PATH="$PATH" HOME=/root SYSTEMD_LOG_TARGET=console XDG_RUNTIME_DIR=/run XDG_CONFIG_HOME=/var/lib \
        XDG_CACHE_HOME=/var/cache SYSTEMD_UNIT_PATH=/run/units:/etc/systemd/system:/usr/lib/systemd/system \
        /lib/systemd/systemd --user --unit=default.target
) &
manager=$!
cat >/dev/null # until whoever started this is done
kill -TERM "$manager" 2>/dev/null || true
for _ in $(seq 100); do
    kill -0 "$manager" 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$manager" 2>/dev/null || true
