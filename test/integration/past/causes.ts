/** Follows the causes of a write, from change to change, through the lists of changes of a server. */
import type { Change, ChangeList } from '#control-plane/past/changes.ts'

/** Answers GET of a path. */
export type Read = (path: string) => Promise<unknown>

/** A write in a chain of causes. */
export interface ChainedWrite {
  readonly change: Change
  /** `ADDED replicasets/web-5d8`. */
  readonly what: string
  readonly who: string
}

const CAUSE = /^([^./]+)(?:\.([^/]+))?\/(?:([^/]+)\/)?([^/]+)@(\d+)$/

/** The change that a cause names; undefined: the object had no change of its own at that revision. */
export async function changeOf(read: Read, cause: string): Promise<ChainedWrite | undefined> {
  const [, plural = '', group = '', namespace, name, version] = CAUSE.exec(cause) ?? []
  if (version === undefined) throw new Error(`${cause} is not a cause`)
  const folder = group === '' ? '/api/v1' : `/apis/${group}/v1`
  const path = `${folder}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}/${name}`
  const range = `rv:${Number(version) - 1}..rv:${version}`
  const { items } = (await read(`/past/${encodeURIComponent(range)}${path}`)) as ChangeList
  const [change] = items
  return change === undefined ? undefined : writeOf(change, `${plural}/${name}`)
}

function writeOf(change: Change, about: string): ChainedWrite {
  const who = (change.by?.user ?? '')
    .replace(/^system:(?:serviceaccount:kube-system:)?/, '')
    .replace(/^node:.*/, 'node')
  return { change, what: `${change.type} ${about}`, who }
}

/** The shortest chain of writes from the one that `isFirst` accepts to the cause; empty: there is none. */
export async function chainTo(
  read: Read,
  cause: string,
  isFirst: (write: ChainedWrite) => boolean,
): Promise<readonly ChainedWrite[]> {
  const seen = new Set([cause])
  const paths: { readonly cause: string; readonly after: readonly ChainedWrite[] }[] = [{ cause, after: [] }]
  // The list grows: paths of the same length follow each other.
  for (const path of paths) {
    const write = await changeOf(read, path.cause)
    if (write === undefined) continue
    const after = [write, ...path.after]
    if (isFirst(write)) return after
    const fresh = (write.change.by?.because ?? []).filter((one) => !seen.has(one))
    for (const one of fresh) seen.add(one)
    paths.push(...fresh.map((one) => ({ cause: one, after })))
  }
  return []
}

/** The change that a cause names, the first cause of that one, and so on. */
export async function firstCauses(read: Read, cause: string): Promise<readonly ChainedWrite[]> {
  const write = await changeOf(read, cause)
  if (write === undefined) return []
  const before = write.change.by?.because[0]
  return [write, ...(before === undefined ? [] : await firstCauses(read, before))]
}
