/** Masks secret values in a diff: only equality, change, addition and removal remain visible. */
import type { AnyObject } from '../session/rest.ts'

const SAME = '***'
const BEFORE = '*** (before)'
const AFTER = '*** (after)'

type Data = Readonly<Record<string, unknown>>

interface Versions {
  readonly live: AnyObject | undefined
  readonly merged: AnyObject
}

export function maskedSecrets({ live, merged }: Versions): Versions {
  const from = (live?.['data'] ?? undefined) as Data | undefined
  const to = (merged['data'] ?? undefined) as Data | undefined
  return {
    live: live === undefined ? undefined : withData(live, masked(from, to, BEFORE)),
    merged: withData(merged, masked(to, from, AFTER)),
  }
}

function masked(data: Data | undefined, other: Data | undefined, changed: string): Data | undefined {
  if (data === undefined) return undefined
  const isChanged = (key: string): boolean => Object.hasOwn(other ?? {}, key) && other?.[key] !== data[key]
  return Object.fromEntries(Object.keys(data).map((key) => [key, isChanged(key) ? changed : SAME]))
}

function withData(object: AnyObject, data: Data | undefined): AnyObject {
  return data === undefined ? object : { ...object, data }
}
