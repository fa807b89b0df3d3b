/**
 * The ResourcePoolStatusRequest resource: asks once for the free devices of a driver's pools; the status is the answer.
 */
import {
  type PoolStatus,
  type ResourcePoolStatusRequest,
  ResourcePoolStatusRequests,
  type ResourcePoolStatusRequestSpec,
  type ResourcePoolStatusRequestStatus,
} from '#apis/resource/v1alpha3.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { type Column, defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { validateConditions } from '#meta/conditions.ts'
import { ageText } from '#meta/duration.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  atLeast,
  atMost,
  fixedField,
  inBytes,
  itemLimit,
  longName,
  requiredName,
  uniqueItems,
} from '#meta/validation/declared.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, regexText } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
const MAX_CONDITIONS = 10
const MAX_NAME_BYTES = 253
const MAX_ERROR_BYTES = 256

export const resourcePoolStatusRequest: Resource<ResourcePoolStatusRequest> = defineResource<ResourcePoolStatusRequest>(
  {
    kind: ResourcePoolStatusRequests,
    applyDefaults({ spec }) {
      spec.limit ??= DEFAULT_LIMIT
    },
    validate: ({ spec }) => validateSpec(spec),
    validateUpdate: (next, old) => (semanticEqual(next.spec, old.spec) ? [] : fixedField(fieldPath('spec'))),
    status: { validateUpdate: (next, old) => validateStatusUpdate(next.status, old.status) },
    columns: [
      nameColumn,
      { name: 'Driver', value: ({ spec }) => spec.driver },
      sumColumn('Total', ({ totalDevices = 0 }) => totalDevices),
      sumColumn('Available', ({ availableDevices = 0 }) => availableDevices),
      sumColumn('Allocated', ({ allocatedDevices = 0 }) => allocatedDevices),
      sumColumn('Unavailable', ({ unavailableDevices = 0 }) => unavailableDevices),
      sumColumn('Errors', ({ validationError }) => (validationError === undefined ? 0 : 1)),
      { name: 'Pools', type: 'integer', value: ({ status }) => status?.poolCount ?? 0 },
      { name: 'Status', value: outcomeText },
      { name: 'Completed', value: completedText },
    ],
    deleteAnswersObject: true,
    putNeedsVersion: true,
  },
)

/** The first of the two conditions that is true. */
function outcomeOf({ status }: ResourcePoolStatusRequest): { type: string; since: string | null } | undefined {
  const found = status?.conditions?.find(
    ({ type, status: is }) => (type === 'Complete' || type === 'Failed') && is === 'True',
  )
  return found === undefined ? undefined : { type: found.type, since: found.lastTransitionTime }
}

function sumColumn(name: string, count: (pool: PoolStatus) => number): Column<ResourcePoolStatusRequest> {
  return {
    name,
    value(request) {
      if (request.status === undefined || outcomeOf(request)?.type === 'Failed') return '-'
      return String((request.status.pools ?? []).reduce((sum, pool) => sum + count(pool), 0))
    },
  }
}

function outcomeText(request: ResourcePoolStatusRequest): string {
  const { poolCount = 0, pools = [] } = request.status ?? {}
  const { type } = outcomeOf(request) ?? { type: 'Pending' }
  return type === 'Complete' && poolCount > pools.length ? `Complete (${pools.length}/${poolCount} pools)` : type
}

function completedText(request: ResourcePoolStatusRequest, nowMs: number): string {
  const outcome = outcomeOf(request)
  return outcome?.type === 'Complete' ? ageText(outcome.since ?? undefined, nowMs) : '<none>'
}

function validateSpec({ driver, poolName, limit }: ResourcePoolStatusRequestSpec): FieldError[] {
  return collectErrors(
    requiredName(fieldPath('spec.driver'), driver, validateCaselessName),
    poolName !== undefined && validatePoolName(fieldPath('spec.poolName'), poolName),
    limit === undefined && fieldPath('spec.limit').required(),
    atMost(fieldPath('spec.limit'), limit, MAX_LIMIT),
    atLeast(fieldPath('spec.limit'), limit, 1),
  )
}

/** The status is set once, even if it is empty. */
function validateStatusUpdate(
  next: ResourcePoolStatusRequestStatus | undefined,
  old: ResourcePoolStatusRequestStatus | undefined,
): FieldError[] {
  if (next === undefined) return old === undefined ? [] : [fieldPath('status').invalid(null, 'field is immutable')]
  if (old === undefined) {
    const conditions = next.conditions as Parameters<typeof validateConditions>[1]
    return [...validateConditions(fieldPath('status.conditions'), conditions), ...validateStatus(next, old)]
  }
  return semanticEqual(next, old) ? [] : [...immutable(fieldPath('status'), next, old), ...validateStatus(next, old)]
}

function validateStatus(
  next: ResourcePoolStatusRequestStatus,
  old: ResourcePoolStatusRequestStatus | undefined,
): FieldError[] {
  const { poolCount, pools = [], conditions = [] } = next
  const [tooManyPools, tooManyConditions] = [
    itemLimit(fieldPath('status.pools'), pools, MAX_LIMIT),
    itemLimit(fieldPath('status.conditions'), conditions, MAX_CONDITIONS),
  ]
  return collectErrors(
    poolCount === undefined && fieldPath('status.poolCount').required(),
    poolCount !== old?.poolCount && atLeast(fieldPath('status.poolCount'), poolCount, 0),
    tooManyPools,
    tooManyPools.length === 0 &&
      !semanticEqual(pools, old?.pools) &&
      fieldPath('status.pools').each(pools, validatePool),
    tooManyConditions,
    tooManyConditions.length === 0 && uniqueItems(fieldPath('status.conditions'), conditions, ({ type }) => type),
  )
}

const counts = ['totalDevices', 'allocatedDevices', 'availableDevices', 'unavailableDevices'] as const

function validatePool(path: FieldPath, pool: PoolStatus): FieldError[] {
  const { driver, poolName, generation, nodeName, validationError = '' } = pool
  const at = (name: string): FieldPath => path.child(name)
  return collectErrors(
    requiredName(at('driver'), driver, validateCaselessName),
    requiredName(at('poolName'), poolName, validatePoolName),
    // Zero is no valid generation.
    generation === 0 ? at('generation').required() : atLeast(at('generation'), generation, 0),
    atLeast(at('resourceSliceCount'), pool.resourceSliceCount, 1),
    counts.flatMap((name) => atLeast(at(name), pool[name], 0)),
    nodeName !== undefined && longName(at('nodeName'), nodeName),
    byteLength(validationError) > MAX_ERROR_BYTES && at('validationError').tooLong(MAX_ERROR_BYTES),
  )
}

// The printed pattern is the one for lower case.
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const caselessComplaint = regexText(
  "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  `${label}(\\.${label})*`,
  'Example.com',
)

function validateCaselessName(path: FieldPath, name: string): FieldError[] {
  const complaints = inBytes(dns1123Subdomain(name.toLowerCase())).map((one) =>
    one.endsWith(' bytes') ? one : caselessComplaint,
  )
  return path.check(name, () => complaints, 'format=k8s-long-name-caseless')
}

function validatePoolName(path: FieldPath, name: string): FieldError[] {
  const origin = 'format=k8s-resource-pool-name'
  return collectErrors(
    byteLength(name) > MAX_NAME_BYTES && { ...path.tooLong(MAX_NAME_BYTES), origin },
    name.split('/').flatMap((part, at) => {
      if (part === '') return [path.invalid(name, `segment ${at}: must not be empty`, origin)]
      return inBytes(dns1123Subdomain(part)).map((complaint) =>
        path.invalid(part, `segment ${at}: ${complaint}`, origin),
      )
    }),
  )
}
