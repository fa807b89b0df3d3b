/**
 * The default priority levels and flow schemas. Changes of the mandatory objects are reverted; suggested objects are
 * updated until a user changes them. Upstream: apiserver/pkg/apis/flowcontrol/bootstrap, v1.36.
 */
import {
  type FlowSchema,
  FlowSchemas,
  type PolicyRulesWithSubjects,
  type PriorityLevelConfiguration,
  PriorityLevelConfigurations,
  type PriorityLevelConfigurationSpec,
  type ResourcePolicyRule,
  type Subject,
} from '#apis/flowcontrol/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Timer } from '#lib/clock.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { deepCopy, type KubeObject, semanticEqual } from '#meta/object.ts'

import type { Entry } from '../registry/entry.ts'
import { follow, joinFollowings } from '../registry/follow.ts'
import type { Registry } from '../registry/registry.ts'

const AUTO_UPDATE = 'apf.kubernetes.io/autoupdate-spec'

type Untyped<T extends KubeObject> = Omit<T, 'kind' | 'apiVersion'>
type Level = Untyped<PriorityLevelConfiguration>
type Schema = Untyped<FlowSchema>

function metadataOf(name: string): { name: string; annotations: Record<string, string> } {
  return { name, annotations: { [AUTO_UPDATE]: 'true' } }
}

interface Shares {
  readonly shares: number
  readonly lendable: number
  /** Without queues, excess requests are rejected. */
  readonly queues?: number
  readonly handSize?: number
}

/** Requests that find a full queue are rejected. */
const QUEUE_LENGTH = 50

function limited(name: string, { shares, lendable, queues, handSize = 6 }: Shares): Level {
  const spec: PriorityLevelConfigurationSpec = {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: shares,
      limitResponse:
        queues === undefined
          ? { type: 'Reject' }
          : { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: QUEUE_LENGTH } },
      lendablePercent: lendable,
    },
  }
  return { metadata: metadataOf(name), spec, status: {} }
}

export const mandatoryPriorityLevels: readonly Level[] = [
  limited('catch-all', { shares: 5, lendable: 0 }),
  {
    metadata: metadataOf('exempt'),
    spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
    status: {},
  },
]

export const suggestedPriorityLevels: readonly Level[] = [
  limited('system', { shares: 30, lendable: 33, queues: 64 }),
  limited('node-high', { shares: 40, lendable: 25, queues: 64 }),
  limited('leader-election', { shares: 10, lendable: 0, queues: 16, handSize: 4 }),
  limited('workload-high', { shares: 40, lendable: 50, queues: 128 }),
  limited('workload-low', { shares: 100, lendable: 90, queues: 128 }),
  limited('global-default', { shares: 20, lendable: 50, queues: 128 }),
]

function groups(...names: readonly string[]): Subject[] {
  return names.map((name) => ({ kind: 'Group', group: { name } }))
}

function users(...names: readonly string[]): Subject[] {
  return names.map((name) => ({ kind: 'User', user: { name } }))
}

const kubeSystemAccounts: Subject = { kind: 'ServiceAccount', serviceAccount: { namespace: 'kube-system', name: '*' } }
const allUsers = groups('system:unauthenticated', 'system:authenticated')

/** In every namespace; `cluster` adds cluster-scoped requests. */
function resources(verbs: string[], apiGroup: string, names: string[], cluster = true): ResourcePolicyRule {
  const rule = { verbs, apiGroups: [apiGroup], resources: names, namespaces: ['*'] }
  return cluster ? { ...rule, clusterScope: true } : rule
}

function everything(subjects: Subject[]): PolicyRulesWithSubjects {
  return {
    subjects,
    resourceRules: [resources(['*'], '*', ['*'])],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
  }
}

interface Flow {
  readonly level: string
  readonly precedence: number
  /** The flow distinguisher; absent if all requests are one flow. */
  readonly by?: 'ByUser' | 'ByNamespace'
}

function flow(name: string, { level, precedence, by }: Flow, rules: PolicyRulesWithSubjects): Schema {
  return {
    metadata: metadataOf(name),
    spec: {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence: precedence,
      ...(by === undefined ? {} : { distinguisherMethod: { type: by } }),
      rules: [rules],
    },
    status: {},
  }
}

const LEASES = 'coordination.k8s.io'

export const mandatoryFlowSchemas: readonly Schema[] = [
  flow('exempt', { level: 'exempt', precedence: 1 }, everything(groups('system:masters'))),
  flow('catch-all', { level: 'catch-all', precedence: 10_000, by: 'ByUser' }, everything(allUsers)),
]

export const suggestedFlowSchemas: readonly Schema[] = [
  flow('system-nodes', { level: 'system', precedence: 500, by: 'ByUser' }, everything(groups('system:nodes'))),
  flow(
    'system-node-high',
    { level: 'node-high', precedence: 400, by: 'ByUser' },
    {
      subjects: groups('system:nodes'),
      resourceRules: [resources(['*'], '', ['nodes', 'nodes/status']), resources(['*'], LEASES, ['leases'], false)],
    },
  ),
  flow(
    'probes',
    { level: 'exempt', precedence: 2 },
    { subjects: allUsers, nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }] },
  ),
  flow(
    'system-leader-election',
    { level: 'leader-election', precedence: 100, by: 'ByUser' },
    {
      subjects: [...users('system:kube-controller-manager', 'system:kube-scheduler'), kubeSystemAccounts],
      resourceRules: [resources(['get', 'create', 'update'], LEASES, ['leases'], false)],
    },
  ),
  flow(
    'kube-controller-manager',
    { level: 'workload-high', precedence: 800, by: 'ByNamespace' },
    everything(users('system:kube-controller-manager')),
  ),
  flow(
    'kube-scheduler',
    { level: 'workload-high', precedence: 800, by: 'ByNamespace' },
    everything(users('system:kube-scheduler')),
  ),
  flow(
    'kube-system-service-accounts',
    { level: 'workload-high', precedence: 900, by: 'ByNamespace' },
    everything([kubeSystemAccounts]),
  ),
  flow(
    'service-accounts',
    { level: 'workload-low', precedence: 9000, by: 'ByUser' },
    everything(groups('system:serviceaccounts')),
  ),
  flow('global-default', { level: 'global-default', precedence: 9900, by: 'ByUser' }, everything(allUsers)),
]

/** The field manager; upstream's name. */
const MANAGER = 'api-priority-and-fairness-config-producer-v1'
/** The interval for reverting changes. Deletions are repaired at once. */
const PERIOD_MS = 60_000
const SOON_MS = 1000

/** Maintains the objects after `ensureFlowControl`. */
export function keepFlowControl(registry: Registry, onError: (error: unknown) => void): PeriodicTask {
  const { clock } = registry.services
  const ensure = (): Promise<void> => ensureFlowControl(registry)
  const rounds = runPeriodically({ clock, periodMs: PERIOD_MS, onError }, ensure)
  const wanted = new Set(ALL.map(({ metadata }) => metadata.name))
  let soon: Timer | undefined
  const gone = ({ name }: Entry): void => {
    if (!wanted.has(name)) return
    soon ??= clock.after(SOON_MS, () => ((soon = undefined), void ensure().catch(onError)), { background: true })
  }
  const followings = [FlowSchemas, PriorityLevelConfigurations].flatMap((kind) => {
    const store = registry.storeOf(kind)
    return store === undefined ? [] : [follow<Entry>(store.collection, { set: () => undefined, remove: gone })]
  })
  return {
    async stop() {
      soon?.cancel()
      joinFollowings(followings).close()
      await rounds.stop()
    },
  }
}

/** Creates missing objects, updates others, and removes those of an older release. */
export async function ensureFlowControl(registry: Registry): Promise<void> {
  await ensureKind(registry, PriorityLevelConfigurations, mandatoryPriorityLevels, suggestedPriorityLevels)
  await ensureKind(registry, FlowSchemas, mandatoryFlowSchemas, suggestedFlowSchemas)
}

const ALL: readonly Untyped<KubeObject>[] = [
  ...mandatoryPriorityLevels,
  ...suggestedPriorityLevels,
  ...mandatoryFlowSchemas,
  ...suggestedFlowSchemas,
]

type Configured = FlowSchema | PriorityLevelConfiguration

async function ensureKind<T extends Configured>(
  registry: Registry,
  kind: Kind<T>,
  mandatory: readonly Untyped<T>[],
  suggested: readonly Untyped<T>[],
): Promise<void> {
  const place = async (object: Untyped<T>): Promise<void> => {
    if (!(await registry.writer.managing(MANAGER).ensure(kind, object)))
      await refresh(registry, kind, object, mandatory.includes(object))
  }
  await Promise.all([...mandatory, ...suggested].map(place))
  const wanted = new Set([...mandatory, ...suggested].map(({ metadata }) => metadata.name))
  for (const { metadata } of await registry.list(kind, '')) {
    if (!wanted.has(metadata.name) && boolOf(metadata.annotations?.[AUTO_UPDATE]) === true) {
      await registry.writer.delete(kind, { name: metadata.name ?? '' })
    }
  }
}

async function refresh<T extends Configured>(
  registry: Registry,
  kind: Kind<T>,
  wanted: Untyped<T>,
  always: boolean,
): Promise<void> {
  const name = wanted.metadata.name ?? ''
  const current = await registry.get(kind, '', name)
  if (current === undefined || planRefresh(current, wanted, always) === undefined) return
  await registry.writer.managing(MANAGER).update(kind, { name }, (live) => planRefresh(live, wanted, always) ?? live)
}

/** The updated object; undefined if nothing changes. `current` is not modified. */
export function planRefresh<T extends Configured>(current: T, wanted: Untyped<T>, always: boolean): T | undefined {
  const { annotations, generation } = current.metadata
  const annotation = boolOf(annotations?.[AUTO_UPDATE])
  // Without an annotation, a spec that was never changed may be updated.
  const follows = always || (annotation ?? generation === 1)
  const differs = follows && !isAsWanted(current, wanted)
  if (annotation === follows && !differs) return undefined
  const revised = deepCopy(current)
  if (differs) revised.spec = deepCopy(wanted.spec)
  if (annotation !== follows) revised.metadata.annotations = { ...annotations, [AUTO_UPDATE]: String(follows) }
  return revised
}

/** Users may set the lendable percent of the exempt level. */
function isAsWanted({ metadata, spec }: Configured, wanted: Untyped<Configured>): boolean {
  if (metadata.name !== 'exempt' || !('exempt' in spec)) return semanticEqual(spec, wanted.spec)
  return spec.exempt !== undefined && semanticEqual({ ...spec, exempt: 0 }, { ...wanted.spec, exempt: 0 })
}

/** As Go's strconv.ParseBool. */
function boolOf(text: string | undefined): boolean | undefined {
  if (/^(?:1|t|T|TRUE|true|True)$/.test(text ?? '')) return true
  return /^(?:0|f|F|FALSE|false|False)$/.test(text ?? '') ? false : undefined
}
