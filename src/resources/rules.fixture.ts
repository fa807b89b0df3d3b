/** Runs the rules of a kind for tests as the store does, without a store. */
import { schemaFor } from '#apis/schemas.ts'
import type { Resource, WriteContext } from '#apiserver/registry/resource.ts'
import {
  clearSystemFields,
  fillSystemFields,
  prepareCreate,
  prepareUpdate,
  validateCreate,
  validateUpdate,
  warningsFor,
} from '#apiserver/registry/write-rules.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import type { KubeObject } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'
import type { TableCell } from '#meta/table.ts'

/** The result of a write: the object to store, or its errors. */
export interface Verdict<T> {
  readonly object: T
  /** `field: text`, in order. */
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

export interface RuleTrial<T extends KubeObject> {
  /** With defaults, in canonical form. */
  readonly read: (body: object) => T
  readonly create: (body: object) => Promise<Verdict<T>>
  /** Through a subresource if one is given. */
  readonly update: (body: object, old: object, subresource?: string) => Promise<Verdict<T>>
  /** All cells, including those of wide output. */
  readonly cells: (body: object, nowMs?: number) => TableCell[]
}

export interface RuleTrialOptions {
  /** Disabled gates; all others are enabled. */
  readonly off?: readonly string[]
  readonly context?: Partial<WriteContext>
}

/** The gates that v1.36 disables by default and that resources check. */
const offByDefault = [
  'ClusterTrustBundleProjection',
  'ContainerStopSignals',
  'CoordinatedLeaderElection',
  'CrossNamespaceVolumeDataSource',
  'DRANodeAllocatableResources',
  'GenericWorkload',
  'HPAScaleToZero',
  'ImageVolumeWithDigest',
  'MaxUnavailableStatefulSet',
  'PodCertificateRequest',
  'SELinuxMount',
  'TaintTolerationComparisonOperators',
  'UserNamespacesHostNetworkSupport',
]

export function tryRules<T extends KubeObject>(resource: Resource<T>, options: RuleTrialOptions = {}): RuleTrial<T> {
  const context = contextOf(options)
  const anyKind = resource as unknown as Resource
  const canonical = (object: unknown): T => {
    const schema = schemaFor(resource.kind)
    if (schema === undefined) throw new Error(`No schema for ${resource.kind.kind}`)
    return decodeValue(schema, structuredClone(object), 'Ignore', { offences: [] }) as T
  }
  const defaulted = (body: object): T => {
    const { group, version, kind } = resource.kind
    const object = canonical({ kind, apiVersion: group === '' ? version : `${group}/${version}`, ...body })
    resource.applyDefaults?.(object, context)
    return object
  }
  const read = (body: object): T => canonical(defaulted(body))
  return {
    read,
    async create(body) {
      // Like in the store, nothing copies the object between defaulting and preparation.
      const object = defaulted(body)
      clearSystemFields(object.metadata)
      fillSystemFields(object.metadata, context)
      const errors = await complaints(async () => {
        prepareCreate(anyKind, object, context)
        await resource.allocate?.(object, undefined, context)
        await validateCreate(anyKind, object, context, resource.kind)
      })
      return { object: canonical(object), errors, warnings: warningsFor(anyKind, object, undefined, '') }
    },
    async update(body, oldBody, subresource = '') {
      const [object, old] = [read(body), read(oldBody)]
      const errors = await complaints(async () => {
        prepareUpdate(anyKind, [object, old], subresource, context)
        object.metadata.resourceVersion = '1'
        await resource.allocate?.(object, old, context)
        await validateUpdate(anyKind, [object, old], { subresource, gvk: resource.kind }, context)
      })
      delete object.metadata.resourceVersion
      return { object: canonical(object), errors, warnings: warningsFor(anyKind, object, old, subresource) }
    },
    cells: (body, nowMs = context.clock.now()) =>
      (resource.columns ?? []).map((column) => column.value(read(body), nowMs)),
  }
}

function contextOf({ off = offByDefault, context }: RuleTrialOptions): WriteContext {
  return {
    clock: createVirtualClock(),
    random: createSeededRandom(1),
    isEnabled: (gate) => !off.includes(gate),
    allowPrivileged: true,
    user: { name: 'jane', uid: 'u1', groups: ['dev', 'system:authenticated'], extra: { k: ['v'] } },
    verb: 'update',
    dryRun: false,
    objects: { get: async () => undefined, list: async () => [] },
    writer: undefined as never,
    signal: new AbortController().signal,
    ...context,
  }
}

async function complaints(write: () => Promise<void>): Promise<string[]> {
  try {
    await write()
    return []
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const { details, message = '' } = error.status
    return details?.causes?.map((cause) => `${cause.field ?? ''}: ${cause.message ?? ''}`) ?? [message]
  }
}

/** A copy of `body` with one member set, or removed if `value` is undefined; `path` is `spec.ports.0.name`. */
export function changed<T extends object>(body: T, path: string, value: unknown): T {
  const copy = structuredClone(body)
  const names = path.split('.')
  const last = names.pop() as string
  const holder = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], copy)
  if (value === undefined) delete (holder as Record<string, unknown>)[last]
  else (holder as Record<string, unknown>)[last] = value
  return copy
}
