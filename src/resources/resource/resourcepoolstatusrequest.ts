/** ResourcePoolStatusRequest: asks once how many devices of a driver's pools are free; the answer is its status. */
import {
  type PoolStatus,
  type ResourcePoolStatusRequest,
  ResourcePoolStatusRequests,
  type ResourcePoolStatusRequestSpec,
  type ResourcePoolStatusRequestStatus,
} from '#apis/resource/v1alpha3.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { type Column, defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
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
import { child, type FieldError, index, invalid, required, tooLong } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, regexText } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'

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
    validateUpdate: (next, old) => (semanticEqual(next.spec, old.spec) ? [] : fixedField('spec')),
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

/** The first of the two that is true. */
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
  return [
    ...requiredName('spec.driver', driver, validateCaselessName),
    ...(poolName === undefined ? [] : validatePoolName('spec.poolName', poolName)),
    ...(limit === undefined ? [required('spec.limit')] : []),
    ...atMost('spec.limit', limit, MAX_LIMIT),
    ...atLeast('spec.limit', limit, 1),
  ]
}

/** The answer is given once. An empty one is an answer too. */
function validateStatusUpdate(
  next: ResourcePoolStatusRequestStatus | undefined,
  old: ResourcePoolStatusRequestStatus | undefined,
): FieldError[] {
  if (next === undefined) return old === undefined ? [] : [invalid('status', null, 'field is immutable')]
  if (old === undefined) {
    const conditions = next.conditions as Parameters<typeof validateConditions>[1]
    return [...validateConditions('status.conditions', conditions), ...validateStatus(next, old)]
  }
  return semanticEqual(next, old) ? [] : [...immutable('status', next, old), ...validateStatus(next, old)]
}

function validateStatus(
  next: ResourcePoolStatusRequestStatus,
  old: ResourcePoolStatusRequestStatus | undefined,
): FieldError[] {
  const { poolCount, pools = [], conditions = [] } = next
  const [tooManyPools, tooManyConditions] = [
    itemLimit('status.pools', pools, MAX_LIMIT),
    itemLimit('status.conditions', conditions, MAX_CONDITIONS),
  ]
  return [
    ...(poolCount === undefined ? [required('status.poolCount')] : []),
    ...(poolCount === old?.poolCount ? [] : atLeast('status.poolCount', poolCount, 0)),
    ...tooManyPools,
    ...(tooManyPools.length > 0 || semanticEqual(pools, old?.pools)
      ? []
      : pools.flatMap((pool, at) => validatePool(index('status.pools', at), pool))),
    ...tooManyConditions,
    ...(tooManyConditions.length > 0 ? [] : uniqueItems('status.conditions', conditions, ({ type }) => type)),
  ]
}

const counts = ['totalDevices', 'allocatedDevices', 'availableDevices', 'unavailableDevices'] as const

function validatePool(path: string, pool: PoolStatus): FieldError[] {
  const { driver, poolName, generation, nodeName, validationError = '' } = pool
  const at = (name: string): string => child(path, name)
  return [
    ...requiredName(at('driver'), driver, validateCaselessName),
    ...requiredName(at('poolName'), poolName, validatePoolName),
    // Zero is no generation.
    ...(generation === 0 ? [required(at('generation'))] : atLeast(at('generation'), generation, 0)),
    ...atLeast(at('resourceSliceCount'), pool.resourceSliceCount, 1),
    ...counts.flatMap((name) => atLeast(at(name), pool[name], 0)),
    ...(nodeName === undefined ? [] : longName(at('nodeName'), nodeName)),
    ...(byteLength(validationError) > MAX_ERROR_BYTES ? [tooLong(at('validationError'), MAX_ERROR_BYTES)] : []),
  ]
}

// The pattern shown is the one for lower case.
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const caselessComplaint = regexText(
  "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  `${label}(\\.${label})*`,
  'Example.com',
)

function validateCaselessName(field: string, name: string): FieldError[] {
  const complaints = inBytes(dns1123Subdomain(name.toLowerCase())).map((one) =>
    one.endsWith(' bytes') ? one : caselessComplaint,
  )
  return complaining(field, name, complaints, 'format=k8s-long-name-caseless')
}

function validatePoolName(field: string, name: string): FieldError[] {
  const origin = 'format=k8s-resource-pool-name'
  return [
    ...(byteLength(name) > MAX_NAME_BYTES ? [{ ...tooLong(field, MAX_NAME_BYTES), origin }] : []),
    ...name.split('/').flatMap((part, at) => {
      if (part === '') return [invalid(field, name, `segment ${at}: must not be empty`, origin)]
      return inBytes(dns1123Subdomain(part)).map((complaint) =>
        invalid(field, part, `segment ${at}: ${complaint}`, origin),
      )
    }),
  ]
}
