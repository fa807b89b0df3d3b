/** What the field manager needs to know of a write: the kind in all its versions, and which fields the request can set. */
import { atOnce, inSlices } from '#lib/slices.ts'
import type { Versioned } from '#meta/apply/apply-kind.ts'
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

/** What a write makes of an object. */
interface WriteChange {
  readonly live: KubeObject
  readonly next: KubeObject
  /** As it is stored; absent for a new one. */
  readonly current?: Entry
  /** Whether `next` has its owners already. */
  readonly isTracked?: boolean | undefined
}

/** From this size on, tracking a new object in one piece takes too long. In steps it takes about twice the time. */
const SLICED_BYTES = 512 << 10

/**
 * The next object with the defaults of its version, and with who owns which field. A promise when it is large: small ones,
 * nearly all, wait for nothing.
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
  return isLarge(request, current) ? inSlices(steps, services.clock) : atOnce(steps)
}

/** An object that is answered and never stored, with the fields its sender owns. */
export function trackAnswered(
  kind: GroupVersionKind,
  { clock }: Pick<Services, 'clock'>,
  { manager, subresource }: Pick<WriteRequest, 'manager' | 'subresource'>,
  object: KubeObject,
): KubeObject {
  const schema = BUILT_IN.schemaFor(kind)
  const typed = schema === undefined ? undefined : { schema }
  const only = { typeOf: () => typed, convert: (versioned: Versioned) => versioned }
  return trackUpdate({ kind: only, live: undefined, manager, subresource, nowMs: clock.now() }, object)
}

const NOTHING: readonly string[] = []
const STATUS: readonly string[] = ['status']
const ALL_BUT_STATUS: readonly string[] = ['metadata', 'spec']

/** Paths that a request through this part of the resource cannot set, so that nobody owns them by it. */
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
