"""Reading a snapshot from a file that nobody vouches for."""

from __future__ import annotations

from vramscope_analysis.snapshot.errors import SnapshotError
from vramscope_analysis.snapshot.limits import Limits
from vramscope_analysis.snapshot.pickles.machine import Machine, Progress
from vramscope_analysis.snapshot.pickles.source import Source, open_source, source_name
from vramscope_analysis.snapshot.plain import snapshot_of
from vramscope_analysis.snapshot.snapshot import Snapshot
from vramscope_analysis.snapshot.tables.building import Building


def read_snapshot(
    source: Source, *, limits: Limits | None = None, progress: Progress | None = None
) -> Snapshot:
    """Read what ``torch.cuda.memory._dump_snapshot`` or ``pickle.dump`` wrote, gzipped or not.

    ``source`` is a path, the bytes themselves or a file opened for reading bytes. Nothing in the
    file is ever executed: only plain data is built. ``progress`` is called with the bytes done
    and the bytes there are.

    Raises SnapshotError for anything that is not a snapshot, is damaged or goes beyond the
    limits, and OSError for a file that cannot be read.
    """
    limits = Limits() if limits is None else limits
    try:
        data = open_source(source, limits)
        machine = Machine(data, limits, progress)
        plain = machine.run()
        building = Building(limits, limits.rows(len(data)), keeps_runs=machine.shares_runs)
        # Its memo is as large as the file.
        del machine
        return snapshot_of(plain, building)
    except SnapshotError as error:
        raise SnapshotError(f"{source_name(source)}: {error}") from None
