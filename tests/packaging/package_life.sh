#!/bin/bash
# The life of the installed package under systemd; clean_root.py runs it in a machine of its own. A row a behaviour.
failed=0
row() { # NAME COMMAND...
    local name=$1
    shift
    if out=$("$@" 2>&1); then echo "ok     $name"; else
        echo "FAILED $name: $out"
        failed=$((failed + 1))
    fi
}
pid() { systemctl show specmined --property MainPID --value; }
active() { [[ $(systemctl is-active specmined) == active ]]; }

# Not the usual port: the network is that of a machine on which a daemon may run
port=/run/systemd/system/specmined.socket.d
mkdir -p "$port"
printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:19752\n' >"$port/port.conf"
sed -i 's/^programs:.*/programs: [{name: app, exe: \/usr\/local\/bin\/app}]/' /etc/specmine/specmined.yaml
grep -q '^metrics' /etc/specmine/specmined.yaml || echo 'metrics: {listen: "127.0.0.1:19752"}' >>/etc/specmine/specmined.yaml
/usr/local/bin/app 1000000 2000 >/dev/null &
export DEBIAN_FRONTEND=noninteractive
before=$(md5sum </etc/specmine/specmined.yaml)

row "systemctl enable --now starts the daemon" systemctl enable --now specmined
row "it is active, and not root" eval 'active && [[ $(stat -c %U /proc/$(pid)) == specmine ]]'
row "specmine status answers" eval 'for i in $(seq 30); do specmine status && break; sleep 1; done'
row "it is scraped" python3 -c 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:19752/metrics").read()'
row "the page starts" eval 'systemctl start specmine-web && sleep 3 && [[ $(systemctl is-active specmine-web) == active ]]'
row "its manual is there" test -s /usr/share/man/man1/specmine-mine.1.gz
was=$(pid)
row "upgrade" dpkg --install /run/shared/again.deb
row "the upgrade started the daemon anew" eval 'active && [[ $(pid) != "$was" ]]'
row "the upgrade kept the configuration" eval '[[ $(md5sum </etc/specmine/specmined.yaml) == "$before" ]]'
row "what was learned is still there" test -s /var/lib/specmine/specmine.db
rm -r "$port"
row "remove" apt-get remove -y -qq specmine
row "nothing of it runs" eval '! pgrep -u specmine'
row "its configuration and store stay" test -e /etc/specmine/specmined.yaml -a -s /var/lib/specmine/specmine.db
row "nothing else stays" eval '! find /usr /etc -path "*specmine*" ! -path "/etc/specmine*" ! -name "app" ! -path "*/specmine-test*" | grep .'
row "purge" apt-get purge -y -qq specmine
row "nothing stays" eval '! find /usr /etc /var /run -path "*specmine*" ! -name "*specmine-test*" ! -path "/run/shared*" ! -path "/var/log/*" ! -path "/var/cache/apt/*" | grep .'
row "installed again, it is not started by itself" eval 'dpkg --install /run/shared/again.deb && ! active'
[[ $failed == 0 ]]
