/**
 * Runs a resource's steps of a write (decode, default, prepare, validate) without a store, for tests of this folder.
 */
import { schemaFor } from '#apis/schemas.ts'
import type { Resource, WriteContext } from '#apiserver/registry/resource.ts'
import { prepareUpdate } from '#apiserver/registry/write-rules.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { TableCell } from '#meta/table.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import type { FieldError } from '#meta/validation/field-path.ts'

export const NOW = '2026-01-01T00:00:00Z'

/** Gates of v1.36 that are off. */
const gatesOff = new Set(['CrossNamespaceVolumeDataSource', 'GenericWorkload', 'MutablePVNodeAffinity'])

export function contextWith(overrides: Partial<WriteContext> = {}): WriteContext {
  const context: Partial<WriteContext> = {
    clock: createVirtualClock(Date.parse(NOW)),
    random: createSeededRandom(1),
    isEnabled: (gate) => !gatesOff.has(gate),
    allowPrivileged: true,
    dryRun: false,
    signal: new AbortController().signal,
    ...overrides,
  }
  return context as WriteContext
}

/** A partial object, as a client may send it. */
export type Sent = Readonly<Record<string, unknown>>

export interface Outcome<T> {
  readonly object: T
  readonly errors: string[]
  readonly warnings: string[]
}

export interface Trial<T> {
  /** Decoded, with defaults. */
  load(sent: Sent): T
  create(sent: Sent, context?: WriteContext): Outcome<T>
  /** `part` is the subresource; empty for the object itself. */
  update(sent: Sent, old: Sent, part?: string): Outcome<T>
  cells(sent: Sent): TableCell[]
}

/** Metadata is not validated, because the store does that. */
export function trialOf<T extends KubeObject>(resource: Resource<T>): Trial<T> {
  const schema = schemaFor(resource.kind)
  if (schema === undefined) throw new Error(`No schema for ${resource.kind.kind}`)
  const decode = (value: unknown): T => decodeValue(schema, value, 'Ignore', { offences: [] }) as T
  const base = contextWith()
  const load = (sent: Sent): T => {
    const object = decode(deepCopy(sent))
    resource.applyDefaults?.(object, base)
    return decode(object)
  }
  const outcome = (object: T, errors: FieldError[], warnings: string[]): Outcome<T> => ({
    object: decode(deepCopy(object)),
    errors: errors.map(fieldErrorText),
    warnings,
  })
  const hasStatus = resource.kind.subresources.some(({ name }) => name === 'status')
  const change = (next: T, old: T): Outcome<T> => {
    if (hasStatus) (next as T & { status?: unknown }).status = (old as T & { status?: unknown }).status
    resource.prepareUpdate?.(next, old, base)
    const errors = resource.validateUpdate?.(next, old, base) ?? resource.validate?.(next, base) ?? []
    return outcome(next, errors, resource.warnings?.(next, old) ?? [])
  }
  return {
    load,
    create(sent, context = base) {
      const object = load(sent) as T & { status?: unknown }
      if (hasStatus && resource.statusOnCreate !== 'kept') delete object.status
      resource.prepareCreate?.(object, context)
      return outcome(object, resource.validate?.(object, context) ?? [], resource.warnings?.(object, undefined) ?? [])
    },
    update(sent, oldSent, part = '') {
      const [next, old] = [load(sent), load(oldSent)]
      if (part === '') return change(next, old)
      const rules = (part === 'status' ? resource.status : resource.parts?.[part]) ?? {}
      prepareUpdate(resource, [next, old], part, base)
      return outcome(next, rules.validateUpdate?.(next, old, base) ?? [], rules.warnings?.(next, old) ?? [])
    },
    cells(sent) {
      const object = load(sent)
      return (resource.columns ?? []).map((column) => column.value(object, Date.parse(NOW)))
    },
  }
}
