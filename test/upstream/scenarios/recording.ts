/**
 * Records the outcome of a scenario as lines that can be compared: the final objects, their conditions over time, and
 * the events. Random values are removed.
 */
import { DaemonSets, ControllerRevisions, Deployments, ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { HorizontalPodAutoscalers } from '#apis/autoscaling/v2.ts'
import { CronJobs, Jobs } from '#apis/batch/v1.ts'
import {
  ConfigMaps,
  Endpoints,
  type Event,
  Events,
  Namespaces,
  PersistentVolumeClaims,
  Pods,
  ReplicationControllers,
  ResourceQuotas,
  Secrets,
  ServiceAccounts,
  Services,
} from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { ResourceClaims } from '#apis/resource/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informers } from '#client/informers.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import type { VirtualNodes } from '../virtual-nodes.ts'

/** All kinds whose objects a scenario may leave in its namespace. */
const KINDS: readonly Kind[] = [
  ConfigMaps,
  ControllerRevisions,
  CronJobs,
  DaemonSets,
  Deployments,
  EndpointSlices,
  Endpoints,
  HorizontalPodAutoscalers,
  Jobs,
  PersistentVolumeClaims,
  PodDisruptionBudgets,
  Pods,
  ReplicaSets,
  ReplicationControllers,
  ResourceClaims,
  ResourceQuotas,
  Secrets,
  ServiceAccounts,
  Services,
  StatefulSets,
]

const LOOK_EVERY_MS = 250
/** Nothing goes on for ever: a scenario that is never quiet is looked at as it is then. */
const MAX_QUIET_MS = 60_000

export interface Recording {
  readonly objects: readonly string[]
  /** `Deployment web Progressing: True NewReplicaSetCreated …` for each change of a condition, in its order. */
  readonly conditions: readonly string[]
  readonly events: readonly string[]
  readonly lost: readonly string[]
}

interface Conditioned extends KubeObject {
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly { type: string; status: string; reason?: string; message?: string }[]
  }
}

/** Follows everything from its start on. */
export class Recorder {
  readonly #client: ApiClient
  readonly #clock: Clock
  readonly #informers: Informers
  readonly #kinds: readonly Kind[]
  readonly #over = new AbortController()
  /** Names that the server made up, and what stands for them. */
  readonly #made = new Map<string, string>()
  /** By namespace, or by kind and name: what each condition of each object was, one after the other. */
  readonly #conditions = new Map<string, Map<string, string[]>>()
  readonly #changedMs = new Map<string, number>()

  constructor({ client, clock }: Pick<VirtualNodes, 'client' | 'clock'>, clusterKinds: readonly Kind[]) {
    this.#client = client
    this.#clock = clock
    const onError = (error: unknown, { plural }: Kind): void =>
      void process.stderr.write(`${plural}: ${String(error)}\n`)
    this.#informers = new Informers({ client, random: secureRandom, signal: this.#over.signal, onError })
    this.#kinds = [...new Set([...KINDS, Namespaces, Events, ...clusterKinds])]
    for (const kind of this.#kinds) {
      this.#informers.of(kind).listen({
        added: (object) => this.#see(kind, object),
        updated: (object) => this.#see(kind, object),
        deleted: (object) => this.#see(kind, object),
      })
    }
  }

  async synced(): Promise<void> {
    await this.#informers.synced(this.#kinds)
  }

  async stop(): Promise<void> {
    this.#over.abort()
    await this.#informers.ended()
  }

  #see(kind: Kind, object: Conditioned): void {
    const { name = '', namespace = name, generateName } = object.metadata
    this.#changedMs.set(namespace, this.#clock.elapsed())
    if (generateName !== undefined) this.#made.set(name, `${generateName}*`)
    const all = this.#conditionsOf(kind.namespaced || kind === Namespaces ? namespace : `${kind.kind}/${name}`)
    const { phase, conditions = [] } = object.status ?? {}
    const told = conditions.map(({ type, status, reason = '', message = '' }) => [
      type,
      `${status} ${reason} ${message}`,
    ])
    if (phase !== undefined) told.push(['phase', phase])
    // Phases and conditions of pods are not recorded, because pods have random names; their owners show the outcome.
    for (const [type = '', text = ''] of kind === Pods ? [] : told) {
      const key = `${kind.kind} ${name} ${type}`
      const before = all.get(key) ?? []
      if (before.at(-1) !== text) all.set(key, [...before, text])
    }
  }

  #conditionsOf(what: string): Map<string, string[]> {
    const all = this.#conditions.get(what) ?? new Map<string, string[]>()
    this.#conditions.set(what, all)
    return all
  }

  /** Waits until nothing has happened for a while. */
  async record(namespace: string, quietMs: number, clusterKinds: readonly Kind[]): Promise<Omit<Recording, 'lost'>> {
    const startMs = this.#clock.elapsed()
    const sinceMs = (): number => this.#clock.elapsed() - (this.#changedMs.get(namespace) ?? 0)
    while (sinceMs() < quietMs && this.#clock.elapsed() - startMs < MAX_QUIET_MS)
      await sleep(this.#clock, LOOK_EVERY_MS)
    const { items: events } = await this.#client.list(Events)
    const isAbout = ({ involvedObject: { namespace: own = '', name = '' } }: Event): boolean =>
      own === namespace || (own === '' && name.startsWith(namespace))
    const ofCluster = [...this.#conditions].filter(([of]) =>
      clusterKinds.some(({ kind }) => of.startsWith(`${kind}/${namespace}`)),
    )
    const told = [...(this.#conditions.get(namespace) ?? []), ...ofCluster.flatMap(([, all]) => [...all])]
    const conditions = told.flatMap(([key, texts]) =>
      texts.map((text, at) => this.#masked(`${key} ${at + 1}: ${text}`)),
    )
    return {
      objects: (await this.#objects(namespace, clusterKinds)).sort(),
      conditions: conditions.sort(),
      events: this.#told(events.filter(isAbout)),
    }
  }

  async #objects(namespace: string, clusterKinds: readonly Kind[]): Promise<string[]> {
    const lines: string[] = []
    for (const kind of KINDS) {
      const { items } = await this.#client.list(kind, { namespace })
      lines.push(...items.flatMap((object) => this.#lines(kind, object)))
    }
    for (const kind of clusterKinds) {
      const { items } = await this.#client.list(kind)
      const own = items.filter(({ metadata }) => metadata.name?.startsWith(namespace))
      lines.push(...own.flatMap((object) => this.#lines(kind, object)))
    }
    return lines
  }

  /** One for each field of an object, so that a difference is one line. */
  #lines(kind: Kind, object: KubeObject): string[] {
    const { metadata, ...rest } = object
    const { managedFields = [] } = metadata
    const shown = Object.entries(metadata).filter(([name]) => !UNCOMPARED.has(name))
    const managers = managedFields
      .map(({ manager, operation, subresource = '' }) => `${manager} ${operation} ${subresource}`.trim())
      .filter((manager) => !manager.startsWith('stand-in'))
    const whole = { ...rest, metadata: { ...Object.fromEntries(shown), managers: [...new Set(managers)].sort() } }
    const head = this.#masked(`${kind.kind} ${metadata.name}`)
    const found = fields(whole, '').map((line) => this.#masked(line))
    return found.sort().map((line) => `${head} ${line}`)
  }

  #told(events: readonly Event[]): string[] {
    const counts = new Map<string, number>()
    for (const { involvedObject, type, reason, message, count = 1, reportingComponent } of events) {
      const { kind, name, fieldPath = '' } = involvedObject
      const text = this.#masked(`${kind} ${name}${fieldPath} ${type} ${reason} (${reportingComponent}): ${message}`)
      counts.set(text, (counts.get(text) ?? 0) + count)
    }
    return Array.from(counts, ([text, count]) => `${text} x${count}`).sort()
  }

  #masked(text: string): string {
    const named = text.replaceAll(/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/g, (word) => this.#made.get(word) ?? word)
    return MASKS.reduce((masked, [pattern, by]) => masked.replaceAll(pattern, by), named)
  }
}

/** Fields of all metadata that a line begins with, that the server chooses, or that are compared in another form. */
const UNCOMPARED: ReadonlySet<string> = new Set(
  'name namespace uid resourceVersion creationTimestamp managedFields'.split(' '),
)

const MASKS: readonly (readonly [RegExp, string])[] = [
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<uid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/-\d{8}\b/g, '-<minute>'],
  [/\b10\.\d+\.\d+\.\d+\b/g, '<ip>'],
  [/\bfd00:[\da-f:]+/g, '<ipv6>'],
  [/\b(virtual|zone)-\d\b/g, '$1-*'],
  [/\bkube-api-access-\w{5}\b/g, 'kube-api-access-*'],
  [/X509SHA256=[\da-f]+/g, 'X509SHA256=*'],
  [/(resourceVersion"?: ?")\d+"/g, '$1<version>"'],
  [/(Chose )"[^"]+"( arbitrarily)/g, '$1"*"$2'],
  // Random names in refusals.
  [/(pods "[\w-]+-)\w{5}(" is forbidden)/g, '$1*$2'],
  [/((?:data\.[^ ]+|status.certificate|spec.request): )".{40,}"/g, '$1"<long>"'],
]

/** Returns lines such as `spec.replicas: 3`. Items have no index, because the order is seldom guaranteed. */
function fields(value: unknown, path: string): string[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return [`${path}: []`]
    return value.map((each) => `${path}[]: ${JSON.stringify(sorted(each))}`)
  }
  if (typeof value !== 'object' || value === null) return [`${path}: ${JSON.stringify(value)}`]
  const entries = Object.entries(value)
  if (entries.length === 0) return [`${path}: {}`]
  return entries.flatMap(([name, each]) => fields(each, path === '' ? name : `${path}.${name}`))
}

/** With keys in order, so that equal values are equal texts. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
