/** Compares two versions of an object: which fields changed, and which managers changed them. */
import { equalValues } from '#meta/apply/equal.ts'
import type { KubeObject, ManagedFieldsEntry } from '#meta/object.ts'

export interface FieldChange {
  /** `spec.template.spec.containers[app].image`. */
  readonly path: string
  /** Undefined: the field is new. */
  readonly from: unknown
  /** Undefined: the field is gone. */
  readonly to: unknown
}

/** They change with every write. */
const UNSHOWN: ReadonlySet<string> = new Set([
  'metadata.managedFields',
  'metadata.resourceVersion',
  'metadata.generation',
])

/** In the order of the fields; of the smallest parts that differ. */
export function fieldChanges(before: KubeObject, after: KubeObject): FieldChange[] {
  return [...differences(before, after, '')].filter(({ path }) => !UNSHOWN.has(path))
}

function* differences(from: unknown, to: unknown, path: string): Generator<FieldChange> {
  if (UNSHOWN.has(path) || equalValues(from, to)) return
  const [before, after] = [membersOf(from), membersOf(to)]
  if (before === undefined || after === undefined) {
    yield { path, from, to }
    return
  }
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    yield* differences(before.get(name), after.get(name), joined(path, name, Array.isArray(to)))
  }
}

/** By field, by the name of a named element, or by index. Undefined for values without members. */
function membersOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (Array.isArray(value)) return new Map(value.map((item: unknown, at) => [nameOf(item) ?? String(at), item]))
  if (typeof value !== 'object' || value === null) return undefined
  return new Map(Object.entries(value))
}

/** Containers, volumes and ports have names, conditions have types. */
function nameOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  const { name, type } = item as Readonly<Record<string, unknown>>
  return [name, type].find((text) => typeof text === 'string')
}

/** Names with dots, such as those of labels, stand in brackets. */
function joined(path: string, name: string, isElement: boolean): string {
  if (isElement || !/^[\w-]+$/.test(name)) return `${path}[${name}]`
  return path === '' ? name : `${path}.${name}`
}

/**
 * The managers that wrote between the two versions, newest first. A manager that only lost fields keeps its time; one
 * that writes twice in a second does too, and is named if no other manager wrote.
 */
export function changingManagers(before: KubeObject | undefined, after: KubeObject): string[] {
  const known = before?.metadata.managedFields ?? []
  const isKnown = (entry: ManagedFieldsEntry): boolean => known.some((old) => equalValues(old, entry))
  const changed = (after.metadata.managedFields ?? []).filter((entry) => !isKnown(entry))
  const wrote = changed.filter(
    ({ manager, time }) => !known.some((old) => old.manager === manager && old.time === time),
  )
  const newestFirst = (wrote.length > 0 ? wrote : changed).toSorted((a, b) =>
    (a.time ?? '') < (b.time ?? '') ? 1 : -1,
  )
  return [...new Set(newestFirst.map(({ manager = '' }) => manager).filter((manager) => manager !== ''))]
}

const MAX_VALUE = 40

/** `spec.replicas: 1 → 3`. */
export function changeText({ path, from, to }: FieldChange): string {
  if (from === undefined) return `${path}: + ${valueText(to)}`
  if (to === undefined) return `${path}: - ${valueText(from)}`
  return `${path}: ${valueText(from)} → ${valueText(to)}`
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE - 1)}…` : text
}
