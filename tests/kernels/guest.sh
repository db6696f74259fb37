#!/bin/bash
# Boot another kernel in QEMU, this machine's files as its root (read only), run one command there, and end.
# usage: guest.sh KERNEL-FOLDER RELEASE SHARED-FOLDER SHELL-COMMAND; what it prints goes to SHARED-FOLDER/output, its
# status to .../status. No KVM: the CPU is emulated, and its clock counts instructions, 16 ns each. So what the guest
# measures does not depend on what else this machine does, nor on a stop of the emulator. 6.1 was not seen to come up with
# such a clock: there it is this machine's. LIMIT (s) ends it in any case.
set -euo pipefail
kernels=$1 release=$2 shared=$(realpath "$3")
made=$(mktemp -d /tmp/specmine-guest.XXXX)
trap 'rm -rf "$made"' EXIT
mkdir -p "$made"/root/{bin,mods,proc,sys,dev,new}
cp "$(command -v busybox)" "$made/root/bin/busybox"
for each in sh mount insmod switch_root; do ln -s busybox "$made/root/bin/$each"; done

# Modules in the order in which they need each other, unpacked: busybox knows no xz
number=100
for wanted in virtio_pci 9pnet_virtio 9p virtio_rng; do
    while read -r _ file _; do
        name=$(basename "${file%.xz}")
        compgen -G "$made/root/mods/*-$name" >/dev/null && continue
        case $file in *.xz) xz -dc "$file" ;; *) cat "$file" ;; esac >"$made/root/mods/$number-$name"
        number=$((number + 1))
    done < <(modprobe -d "$kernels" -S "$release" --show-depends "$wanted" | grep ^insmod)
done

cat >"$made/root/init" <<'EOF'
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for module in /mods/*; do insmod $module; done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=512000,ro root /new
for each in tmp run var/tmp var/lib; do mount -t tmpfs tmpfs /new/$each; done
/bin/busybox mkdir /new/run/shared
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 shared /new/run/shared
for each in proc sys dev; do mount -o move /$each /new/$each; done
exec switch_root /new /bin/bash /run/shared/init
EOF
chmod +x "$made/root/init"
cat >"$shared/init" <<'EOF'
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts; mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup; mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
bash /run/shared/command >/run/shared/output 2>&1 </dev/null
echo $? >/run/shared/status
echo o >/proc/sysrq-trigger
sleep 60
EOF
printf '%s\n' "$4" >"$shared/command"
(cd "$made/root" && find . | cpio --create --format=newc --quiet | gzip -1 >../initrd)

case $release in 6.1.*) clock=(-accel tcg,thread=multi) ;; *) clock=(-accel tcg -icount shift=4) ;; esac
nice -n 19 timeout --foreground "${LIMIT:-7200}" qemu-system-x86_64 "${clock[@]}" -cpu max,la57=off -smp 2 -m 4G \
    -nographic -no-reboot -kernel "$kernels/boot/vmlinuz-$release" -initrd "$made/initrd" \
    -append "console=ttyS0 panic=-1 quiet mitigations=off" -device virtio-rng-pci \
    -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$shared,mount_tag=shared,security_model=none" </dev/null >"$shared/console" 2>&1
