#!/bin/bash
# Build the Debian package: a virtual environment in /usr/lib/specmine, and the files of `specmine setup-service`.
# usage: packaging/deb.sh [FOLDER]; writes FOLDER/specmine_VERSION-REVISION_ARCH.deb, by default into dist/.
# REVISION (1) tells two builds of one version apart.
set -euo pipefail
top=$(dirname "$(dirname "$(realpath "$0")")")
out=$(realpath -m "${1:-$top/dist}")
python=/usr/bin/python3 # the system's own: the environment uses it on the host, too
home=/usr/lib/specmine
revision=${REVISION:-1}

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$top/src/specmine/__init__.py")
architecture=$(dpkg --print-architecture)
series=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || date +%s)}
export PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH
umask 022

work=$(mktemp -d /tmp/specmine-deb.XXXX)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$work/source" "$root/DEBIAN" "$root$home" "$out"
# A copy: setuptools leaves build/ where it builds, and takes stale files from it
tar -C "$top" --exclude-vcs --exclude=./.venv --exclude=./dist --exclude=./build --exclude=__pycache__ \
    --exclude='*.egg-info' --exclude='.*_cache' --exclude=.hypothesis --exclude=./tests --exclude=./bench -c . | tar -C "$work/source" -x

"$python" -m venv --without-pip "$root$home"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip --python "$root$home/bin/python3" install --quiet --disable-pip-version-check --no-compile \
    "$work/source[fleet,web]" 2> >(grep -v '^WARNING: Location' >&2)

# Nothing of the environment may name the folder where it was made
rm -f "$root$home"/bin/{activate*,Activate*,pip*} "$root$home/.gitignore"
find "$root$home/bin" -type f ! -name 'specmine*' -delete
sed -i '/^command = /d' "$root$home/pyvenv.cfg"
for each in specmine specmined specmined-forward; do sed -i "1s|.*|#!$home/bin/python3|" "$root$home/bin/$each"; done
rm -rf "$root$home/lib64" "$root$home/include"
packages=$root$home/lib/python$series/site-packages
find "$packages" -name direct_url.json -delete
# No process loads these: the tests compare with them (an import contract holds it)
for each in scipy scikit_learn sklearn joblib threadpoolctl cloudpickle narwhals; do rm -rf "$packages/$each"{,.libs,.py,-*}; done
# numpy's tests and headers, and types, take a fifth of the room. Nothing is stripped: that breaks libraries of wheels
find "$packages/numpy" -type d \( -name tests -o -name include \) -prune -exec rm -rf {} +
find "$packages" -name '*.pyi' -delete
find "$packages" -name '*.a' -delete
find "$packages" -type f -exec chmod 644 {} +

mkdir -p "$root/usr/bin"
for each in specmine specmined specmined-forward; do ln -s "../lib/specmine/bin/$each" "$root/usr/bin/$each"; done
"$root$home/bin/python3" "$root$home/bin/specmine" setup-service --packaged --commands /usr/bin --root "$root" >/dev/null
rm -rf "$root$home/share"
ln -sf ../../../bin/python3 "$root$home/bin/python3"
find "$root/usr/share/man" -type f -exec gzip -9n {} +

doc=$root/usr/share/doc/specmine
mkdir -p "$doc"
cp "$top/README.md" "$doc/README.md"
cp "$top/packaging/debian/copyright" "$doc/copyright"
gzip -9nc "$top/CHANGELOG.md" >"$doc/changelog.gz"
printf 'specmine (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- specmine developers <specmine@example.org>  %s\n' \
    "$version-$revision" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")" | gzip -9nc >"$doc/changelog.Debian.gz"
install -D -m 644 "$top/packaging/debian/lintian-overrides" "$root/usr/share/lintian/overrides/specmine"

for each in postinst prerm postrm; do install -m 755 "$top/packaging/debian/$each" "$root/DEBIAN/$each"; done
echo /etc/specmine/specmined.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<EOF
Package: specmine
Version: $version-$revision
Architecture: $architecture
Maintainer: specmine developers <specmine@example.org>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: python3 (>= $series), python3 (<< $next), python3-bpfcc, adduser, libc6 (>= 2.28), libstdc++6, libgcc-s1, zlib1g
Recommends: systemd
Section: admin
Priority: optional
Description: mines performance assertions from running native programs
 specmine learns with eBPF how long the hot functions of a running native
 program take, and in which calling context. It states that as short assertions
 and says, with the likely cause, when they stop being true. The program is not
 restarted, rebuilt or changed.
EOF
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/specmine_$version-${revision}_$architecture.deb" >/dev/null
echo "$out/specmine_$version-${revision}_$architecture.deb"
