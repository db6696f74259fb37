"""``specmine fleet``: many hosts as one, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option

database_option = click.option(
    "--database",
    "url",
    required=True,
    metavar="URL",
    envvar="SPECMINE_FLEET",
    help="Of PostgreSQL, as libpq writes it; or SPECMINE_FLEET.",
)
authority_option = click.option(
    "--authority", type=PATH, default=Path("specmine-authority"), show_default=True, metavar="FOLDER",
    help="The fleet's certificate authority.",
)  # fmt: skip
label_option = click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="May be repeated.")


@click.group("fleet", short_help="Many hosts as one, on PostgreSQL.")
def command() -> None:
    """Collect what many hosts learned in one database of PostgreSQL 15 or newer.

    Hosts send with specmined-forward. The commands that read take --fleet URL instead of --store.
    """


@command.command("init", short_help="Make a database a fleet.")
@database_option
@authority_option
def init(url: str, authority: Path) -> int:
    """Make tables, roles and a certificate authority, or bring an older fleet to this version.

    The user of the URL must be a superuser, and the database one of its own. Call it as often as you like.
    """
    from specmine.cli.runners.fleet import run_init  # noqa: PLC0415

    return run_init(url, authority)


@command.command("enroll", short_help="Let a host send.")
@click.argument("host")
@database_option
@authority_option
@label_option
@click.option("--output", type=PATH, metavar="FOLDER", help="Of its key, certificate, configuration.  [default: HOST]")
@click.option("--csr", type=PATH, metavar="FILE", help="A certificate request: the key stays on the host.")
def enroll(host: str, url: str, authority: Path, labels: tuple[str, ...], output: Path | None, csr: Path | None) -> int:
    """Make a login for HOST and a folder that is copied to /etc/specmine/fleet there.

    For a HOST that is enrolled already: new labels, and a new certificate.
    """
    from specmine.cli.runners.fleet import run_enroll  # noqa: PLC0415

    return run_enroll(url, host, labels, authority, output or Path(host), csr)


@command.command("serve", short_help="Load what hosts send.")
@database_option
@click.option("--once", is_flag=True, help="End when the inbox is empty.")
@click.option("--keep-minutes", default="48h", show_default=True, metavar="AGE", help="Rows of five minutes.")
@click.option("--keep-hours", default="14d", show_default=True, metavar="AGE", help="Hours of a host.")
@click.option("--keep-fleet", default="400d", show_default=True, metavar="AGE", help="Hours of the fleet.")
@click.option("--limit", default="100GiB", show_default=True, metavar="SIZE", help="Beyond it the oldest rows go.")
@click.option("--metrics", type=PATH, metavar="FILE", help="Write metrics there each minute, for node_exporter.")
@click.option("--roles", default="load,plan,mine", show_default=True, metavar="LIST", help="What this process does.")
def serve(
    url: str,
    once: bool,
    keep_minutes: str,
    keep_hours: str,
    keep_fleet: str,
    limit: str,
    metrics: Path | None,
    roles: str,
) -> int:
    """Load what hosts sent, decide who observes what, mine functions from many hosts. It runs until ^C.

    Several may run at once. One loads and one plans; when it ends, another takes over. Any number mine.
    """
    from specmine.cli.runners.fleet import run_serve  # noqa: PLC0415

    ages = (keep_minutes, keep_hours, keep_fleet)
    return run_serve(url, once=once, ages=ages, limit=limit, metrics=metrics, roles=roles)


@command.command("status", short_help="Is all well.")
@database_option
@format_option
def status(url: str, form: str) -> int:
    """Show how many hosts are active or silent, what waits, and what is held."""
    from specmine.cli.runners.fleet import run_status  # noqa: PLC0415

    return run_status(url, form)


@command.command("hosts", short_help="The hosts.")
@database_option
@label_option
@format_option
def hosts(url: str, labels: tuple[str, ...], form: str) -> int:
    """List the hosts: labels, state, when they were last heard of."""
    from specmine.cli.runners.fleet import run_hosts  # noqa: PLC0415

    return run_hosts(url, labels, form)


@command.command("levels", short_help="Which host, which build is slow.")
@database_option
@label_option
@click.option("--since", default="1d", show_default=True, metavar="AGE", help="Only what was observed so lately.")
@click.option("--level", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True, help="Of intervals.")
@click.option("--all", "everything", is_flag=True, help="List the functions that are the same, and all levels.")
@format_option
def levels(url: str, labels: tuple[str, ...], since: str, level: float, everything: bool, form: str) -> int:
    """Say which hosts stand out, and whether a new build is slower than the one that other hosts run at the same time.

    Hosts are what repeats: means over them leave out the outermost tenth at either end. Exit code 1 if a build is
    slower, 3 if there is nothing to say.
    """
    from specmine.cli.runners.fleet import run_levels  # noqa: PLC0415

    return run_levels(url, labels, since, level=level, everything=everything, form=form)


@command.command("duties", short_help="Who observes what.")
@click.argument("host", required=False)
@database_option
@format_option
def duties(host: str | None, url: str, form: str) -> int:
    """List what each host, or HOST, is asked to observe, and what it did not deliver."""
    from specmine.cli.runners.fleet import run_duties  # noqa: PLC0415

    return run_duties(url, host, form)


@command.command("statements", short_help="What many hosts say together.")
@database_option
@format_option
def statements(url: str, form: str) -> int:
    """List what was mined of each function from all hosts; hosts inherit it."""
    from specmine.cli.runners.fleet import run_statements  # noqa: PLC0415

    return run_statements(url, form)


@command.command("quarantine", short_help="Stop a host from sending.")
@click.argument("host")
@database_option
@click.option("--end", is_flag=True, help="Let it send again.")
def quarantine(host: str, url: str, end: bool) -> int:
    """Take nothing from HOST any more, and leave it out of hours of the fleet."""
    from specmine.cli.runners.fleet import run_quarantine  # noqa: PLC0415

    return run_quarantine(url, host, end=end)


@command.command("revoke", short_help="Certificates of a host no longer open anything.")
@click.argument("host")
@database_option
@authority_option
@click.option("--keep-newest", is_flag=True, help="Keep the one that was made last: after a renewal.")
def revoke(host: str, url: str, authority: Path, keep_newest: bool) -> int:
    """Revoke the certificates of HOST, and let PostgreSQL read the list anew.

    To renew one, enroll the host again, copy the folder there, and revoke with --keep-newest.
    """
    from specmine.cli.runners.fleet import run_revoke  # noqa: PLC0415

    return run_revoke(url, host, authority, but_newest=keep_newest)


@command.command("forget", short_help="Remove a host and all that it sent.")
@click.argument("host")
@database_option
def forget(host: str, url: str) -> int:
    """Remove HOST, its login, and all that it sent. What hours of the fleet have of it stays in them."""
    from specmine.cli.runners.fleet import run_forget  # noqa: PLC0415

    return run_forget(url, host)


@command.command("import", short_help="A store becomes part of the fleet.")
@click.argument("store", type=PATH)
@database_option
@click.option("--host", metavar="NAME", help="Whose store it is.  [default: the host name in it]")
def import_(store: Path, url: str, host: str | None) -> int:
    """Take all that STORE holds into the fleet. It is there once, however often it is imported."""
    from specmine.cli.runners.fleet import run_import  # noqa: PLC0415

    return run_import(url, store, host)


@command.command("export", short_help="Rows for other tools.")
@database_option
@click.option("--parquet", "folder", type=PATH, required=True, metavar="FOLDER", help="One file for each level.")
@click.option("--since", metavar="AGE", help="Only what was observed so lately, such as 30d.")
def export(url: str, folder: Path, since: str | None) -> int:
    """Write rows of five minutes, hours of hosts and of the fleet as Parquet, medians as plain columns.

    It needs the package pyarrow: pip install 'specmine[parquet]'.
    """
    from specmine.cli.runners.fleet import run_export  # noqa: PLC0415

    return run_export(url, folder, since)
