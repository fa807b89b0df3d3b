/**
 * Converts `metadata.managedFields` to managers and back. Each entry has a manager, an operation, a version and a
 * subresource.
 */
import { compareText, goQuote } from '#lib/go/text.ts'
import { stringifyJson } from '#lib/json/json.ts'
import { runAtOnce, type Steps } from '#lib/time-slicing.ts'

import type { ManagedFieldsEntry } from '../object.ts'
import type { Managers, Owned } from './apply-kind.ts'
import { EMPTY_SET, type FieldSet, unionOfAll } from './field-set.ts'
import { decodeFieldsV1, encodeFieldsInSteps } from './fields-v1.ts'

/** The id of a manager, the key of `Managers`. Appliers have one id in all versions, updaters one for each version. */
export interface Manager {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
}

/** Upstream's form, which determines the sort order: an entry of managedFields with its identifying fields. */
export function managerId({ manager, operation, apiVersion, subresource }: Manager): string {
  return stringifyJson({
    ...(manager === '' ? {} : { manager }),
    operation,
    ...(operation === 'Apply' ? {} : { apiVersion }),
    ...(subresource === '' ? {} : { subresource }),
  })
}

/** The manager of an id; without the version for an applier. */
export function managerOf(id: string): Manager {
  const entry = JSON.parse(id) as Partial<Manager> & Pick<Manager, 'operation'>
  return { manager: '', apiVersion: '', subresource: '', ...entry }
}

/** Managers, and the time of each one's last change. */
export interface ManagedState {
  readonly managers: Managers
  /** RFC 3339, by manager id. */
  readonly times: ReadonlyMap<string, string>
}

export const NOT_MANAGED: ManagedState = { managers: new Map(), times: new Map() }

/** Throws for an unreadable entry, in upstream's words. */
export function decodeManaged(entries: readonly ManagedFieldsEntry[]): ManagedState {
  const managers = new Map<string, Owned>()
  const times = new Map<string, string>()
  for (const [at, entry] of entries.entries()) {
    const { manager = '', operation, apiVersion = '', fieldsType = '', subresource = '', time } = entry
    if (operation !== 'Apply' && operation !== 'Update') throw new TypeError('operation must be `Apply` or `Update`')
    if (apiVersion === '') throw new TypeError('apiVersion must not be empty')
    if (fieldsType !== 'FieldsV1') throw badFieldsType(fieldsType, at)
    const id = managerId({ manager, operation, apiVersion, subresource })
    managers.set(id, { set: decodeFieldsV1(entry.fieldsV1 ?? {}), apiVersion, applied: operation === 'Apply' })
    if (time === undefined) times.delete(id)
    else times.set(id, time)
  }
  return { managers, times }
}

function badFieldsType(fieldsType: string, at: number): TypeError {
  if (fieldsType === '') return new TypeError(`missing fieldsType in managed fields entry ${at}`)
  return new TypeError(`invalid fieldsType ${goQuote(fieldsType)} in managed fields entry ${at}`)
}

/** Entries in upstream's order: appliers first, then by time, name, version and subresource. */
export function encodeManaged(managed: ManagedState): ManagedFieldsEntry[] {
  return runAtOnce(encodeManagedInSteps(managed))
}

export function* encodeManagedInSteps({ managers, times }: ManagedState): Steps<ManagedFieldsEntry[]> {
  const entries: ManagedFieldsEntry[] = []
  for (const [id, owned] of managers) entries.push(yield* encodeEntry(id, owned, times.get(id)))
  return entries.sort(compareEntries)
}

function* encodeEntry(id: string, { set, apiVersion }: Owned, time: string | undefined): Steps<ManagedFieldsEntry> {
  const { manager, operation, subresource } = managerOf(id)
  return {
    ...(manager === '' ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: yield* encodeFieldsInSteps(set),
    ...(subresource === '' ? {} : { subresource }),
  }
}

function compareEntries(a: ManagedFieldsEntry, b: ManagedFieldsEntry): number {
  for (const name of ['operation', 'time', 'manager', 'apiVersion', 'subresource'] as const) {
    const order = compareText(a[name] ?? '', b[name] ?? '')
    if (order !== 0) return order
  }
  return 0
}

/** The maximum number of updater entries, which limits the size of objects; the oldest are merged. */
const MAX_UPDATERS = 10

/** The manager name of merged updaters. */
const ANCIENT = 'ancient-changes'

/** At most MAX_UPDATERS entries with operation Update: the oldest of each version are merged. */
export function capUpdaters(managed: ManagedState): ManagedState {
  const updaters = [...managed.managers].filter(([, { applied }]) => !applied)
  let excess = updaters.length - MAX_UPDATERS
  if (excess <= 0) return managed
  const managers = new Map(managed.managers)
  const times = new Map(managed.times)
  const timeOf = (id: string): string => times.get(id) ?? ''
  const oldestFirst = updaters.sort(([a], [b]) => compareText(timeOf(a), timeOf(b)) || compareText(a, b))
  const firstOf = new Map<string, string>()
  // Merged at the end in one step, to avoid repeated copies.
  const ancients = new Map<string, { readonly owned: Owned; readonly sets: FieldSet[] }>()
  for (const [id, owned] of oldestFirst) {
    if (excess <= 0) break
    const { apiVersion } = owned
    const ancient = managerId({ manager: ANCIENT, operation: 'Update', apiVersion, subresource: '' })
    const first = firstOf.get(apiVersion)
    if (first === undefined) firstOf.set(apiVersion, id)
    else if (id !== ancient) {
      // The first of a version is renamed only when a second is merged into it.
      const sets = ancients.get(ancient)?.sets ?? [(managers.get(ancient) ?? managers.get(first))?.set ?? EMPTY_SET]
      if (!managers.has(ancient)) managers.delete(first)
      managers.delete(id)
      sets.push(owned.set)
      ancients.set(ancient, { owned, sets })
      managers.set(ancient, owned)
      const time = managed.times.get(id)
      if (time === undefined) times.delete(ancient)
      else times.set(ancient, time)
      excess--
    }
  }
  for (const [ancient, { owned, sets }] of ancients) managers.set(ancient, { ...owned, set: unionOfAll(sets) })
  return { managers, times }
}
