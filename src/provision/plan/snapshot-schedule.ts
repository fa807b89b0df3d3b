/** Computes the times, names and retention of etcd snapshots. Pure. */

/** Dashes instead of colons, which some systems reject in file names. */
function timestamp(nowMs: number): string {
  return new Date(nowMs)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-')
}

/** The default name of `snapshot-save`. */
export function onceName(nowMs: number): string {
  return `rke_etcd_snapshot_${timestamp(nowMs)}`
}

export function recurringName(nowMs: number): string {
  return `${timestamp(nowMs)}_etcd`
}

const RECURRING = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z_etcd$/

/** The time in the name; undefined for a custom name. */
function takenAt(name: string): number | undefined {
  const [, day, hour, minute, second] = RECURRING.exec(name) ?? []
  return day === undefined ? undefined : Date.parse(`${day}T${hour}:${minute}:${second}Z`)
}

function recurring(names: readonly string[]): string[] {
  return names.filter((name) => takenAt(name) !== undefined).toSorted()
}

/** The wait until the next snapshot: a restart does not reset the interval, and the first snapshot is taken at once. */
export function dueInMs(names: readonly string[], intervalMs: number, nowMs: number): number {
  const last = recurring(names).at(-1)
  const lastMs = last === undefined ? undefined : takenAt(last)
  // A clock that was set back must not block snapshots.
  if (lastMs === undefined || lastMs > nowMs) return 0
  return Math.max(0, lastMs + intervalMs - nowMs)
}

/** All but the newest. Snapshots with custom names stay. */
export function outdated(names: readonly string[], retention: number): string[] {
  return recurring(names).slice(0, -retention)
}
