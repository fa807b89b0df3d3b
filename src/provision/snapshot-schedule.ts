/** When snapshots of etcd are due, how they are called and which ones go. Pure. */

/** Colons would make names that other systems refuse: they are always dashes. */
function timestamp(nowMs: number): string {
  return new Date(nowMs)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-')
}

/** Of `snapshot-save` without a name. */
export function onceName(nowMs: number): string {
  return `rke_etcd_snapshot_${timestamp(nowMs)}`
}

export function recurringName(nowMs: number): string {
  return `${timestamp(nowMs)}_etcd`
}

const RECURRING = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z_etcd$/

/** When it was taken; undefined: somebody has named it. */
function takenAt(name: string): number | undefined {
  const [, day, hour, minute, second] = RECURRING.exec(name) ?? []
  return day === undefined ? undefined : Date.parse(`${day}T${hour}:${minute}:${second}Z`)
}

function recurring(names: readonly string[]): string[] {
  return names.filter((name) => takenAt(name) !== undefined).toSorted()
}

/** How long to wait for the next: whoever starts again does not begin to count again, and a first one is taken at once. */
export function dueInMs(names: readonly string[], intervalMs: number, nowMs: number): number {
  const last = recurring(names).at(-1)
  const lastMs = last === undefined ? undefined : takenAt(last)
  // A clock that was put back must not keep snapshots from being taken.
  if (lastMs === undefined || lastMs > nowMs) return 0
  return Math.max(0, lastMs + intervalMs - nowMs)
}

/** Those that go: all but the newest. What people have named stays. */
export function outdated(names: readonly string[], retention: number): string[] {
  return recurring(names).slice(0, -retention)
}
