/**
 * The inputs of the field manager for server-side apply: all versions of the kind, and the fields that a request can
 * set.
 */
import { runAtOnce, runInSlices } from '#lib/time-slicing.ts'
import type { VersionedValue } from '#meta/apply/apply-kind.ts'
import type { FieldFilter } from '#meta/apply/field-filter.ts'
import { type FieldRequest, trackUpdate, trackUpdateInSteps } from '#meta/apply/field-manager.ts'
import { fieldPaths } from '#meta/apply/field-set.ts'
import { type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Entry } from './entry.ts'
import type { Resource } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
import { BUILT_IN } from './shapes.ts'
import { isLarge } from './sizes.ts'
import { applyDefaults } from './write-rules.ts'

export function fieldRequestOf(
  resource: Resource,
  { clock }: Services,
  request: WriteRequest,
  live: KubeObject,
): FieldRequest {
  const { kind } = resource.kind
  const { shapes } = resource
  const gvkOf = (apiVersion: string): { group: string; version: string; kind: string } => ({
    ...parseApiVersion(apiVersion),
    kind,
  })
  const filter = filterOf(resetsOf(resource, request.subresource))
  return {
    kind: {
      ...(filter === undefined ? {} : { filter: () => filter }),
      typeOf(apiVersion) {
        const schema = (shapes.typeFor ?? shapes.schemaFor)(gvkOf(apiVersion))
        return schema === undefined ? undefined : { schema }
      },
      convert: (object, apiVersion) =>
        object.apiVersion === apiVersion
          ? object
          : { apiVersion, value: shapes.convert(object.value as KubeObject, gvkOf(apiVersion)) },
    },
    live,
    manager: request.manager,
    subresource: request.subresource,
    nowMs: clock.now(),
  }
}

/** The next object of a write. */
interface WriteChange {
  readonly live: KubeObject
  readonly next: KubeObject
  /** The stored object; absent for a new one. */
  readonly current?: Entry
  /** True if `next` already has its managed fields. */
  readonly isTracked?: boolean | undefined
}

/** Larger new objects are tracked in steps, which take about twice the time but yield in between. */
const SLICED_BYTES = 512 << 10

/**
 * The next object with the defaults of its version and its managed fields. A promise if it is large; small ones, nearly
 * all, are handled synchronously.
 */
export function settleChange(
  resource: Resource,
  services: Services,
  request: WriteRequest,
  { live, next, current, isTracked = false }: WriteChange,
): KubeObject | Promise<KubeObject> {
  applyDefaults(resource, request.gvk, next, services)
  if (isTracked || request.isAdmitted === true) return next
  const isSliced = (request.bodyBytes ?? 0) > SLICED_BYTES
  const steps = trackUpdateInSteps({ ...fieldRequestOf(resource, services, request, live), isSliced }, next)
  return isLarge(request, current) ? runInSlices(steps, services.clock) : runAtOnce(steps)
}

/** A response object that is never stored, with the fields that its sender owns. */
export function trackAnswered(
  kind: GroupVersionKind,
  { clock }: Pick<Services, 'clock'>,
  request: Pick<WriteRequest, 'manager' | 'subresource' | 'bodyBytes'>,
  object: KubeObject,
): KubeObject | Promise<KubeObject> {
  const schema = BUILT_IN.schemaFor(kind)
  const typed = schema === undefined ? undefined : { schema }
  const only = { typeOf: () => typed, convert: (versioned: VersionedValue) => versioned }
  const { manager, subresource } = request
  const isSliced = isLarge(request)
  const fields = { kind: only, live: undefined, manager, subresource, nowMs: clock.now(), isSliced }
  return isSliced ? runInSlices(trackUpdateInSteps(fields, object), clock) : trackUpdate(fields, object)
}

const NOTHING: readonly string[] = []
const STATUS: readonly string[] = ['status']
const ALL_BUT_STATUS: readonly string[] = ['metadata', 'spec']

/** Paths that a request to this subresource cannot set, so that it owns none of them. */
export function resetsOf(resource: Resource, subresource: string): readonly string[] {
  const { kind, resets, status, parts } = resource
  const part = parts?.[subresource]
  if (subresource === 'status') return status?.resets ?? status?.keeps ?? ALL_BUT_STATUS
  if (subresource !== '') return part?.resets ?? part?.keeps ?? NOTHING
  return resets ?? (kind.subresources.some(({ name }) => name === 'status') ? STATUS : NOTHING)
}

const filters = new WeakMap<readonly string[], FieldFilter>()

function filterOf(resets: readonly string[]): FieldFilter | undefined {
  if (resets.length === 0) return undefined
  const known = filters.get(resets)
  if (known !== undefined) return known
  const filter: FieldFilter = { mode: 'exclude', fields: fieldPaths(...resets) }
  filters.set(resets, filter)
  return filter
}
