/** The snapshots of etcd on the machines of a cluster, grouped by name. */
export interface SnapshotRow {
  /** Empty: in the bucket of the cluster. */
  readonly machine: string
  readonly name: string
  readonly revision?: number
  readonly sizeBytes?: number
  readonly problem?: string
  readonly isCopy?: boolean
}

export interface Snapshot {
  readonly name: string
  /** In milliseconds; undefined if the name has no time. */
  readonly takenAtMs: number | undefined
  readonly places: readonly string[]
  readonly sizeBytes: number | undefined
  readonly revision: number | undefined
  readonly problems: readonly string[]
  /** One place has all of it: it can be restored. */
  readonly isComplete: boolean
}

/** The newest first, then those without a time by name. */
export function groupSnapshots(rows: readonly SnapshotRow[]): readonly Snapshot[] {
  const byName = Map.groupBy(rows, ({ name }) => name)
  const snapshots = [...byName].map(([name, same]) => snapshotOf(name, same))
  return snapshots.sort((a, b) => (b.takenAtMs ?? 0) - (a.takenAtMs ?? 0) || (a.name < b.name ? -1 : 1))
}

function snapshotOf(name: string, rows: readonly SnapshotRow[]): Snapshot {
  const good = rows.find(({ problem }) => problem === undefined) ?? rows[0]
  return {
    name,
    takenAtMs: timeIn(name),
    places: rows.map(({ machine, isCopy }) => (isCopy === true ? 'bucket' : machine)),
    sizeBytes: good?.sizeBytes,
    revision: good?.revision,
    isComplete: rows.some(({ problem }) => problem === undefined),
    problems: rows.flatMap(({ machine, problem }) => (problem === undefined ? [] : [`${machine}: ${problem}`])),
  }
}

/** Snapshots of the server and of the schedule have their time in their name: `rke_etcd_snapshot_2026-01-01T10-00-00Z`. */
function timeIn(name: string): number | undefined {
  const [, day, hour, minute, second] = /(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z/.exec(name) ?? []
  const time = Date.parse(`${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(time) ? undefined : time
}
