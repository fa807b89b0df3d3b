/**
 * Calls HTTP extenders after the plugins, for the feasible nodes. The protocol is upstream's
 * `k8s.io/kube-scheduler/extender/v1`.
 */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { durationMs } from '#lib/go/duration.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import type { Logger } from '#lib/log/log.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { ExtenderConfiguration, ExtenderTls } from '../configuration/configuration.ts'
import { type Candidate, failed, type PluginRefusal, type Refusal, type Search } from '../framework/framework.ts'

const DEFAULT_TIMEOUT_MS = 5000
const MAX_ANSWER_BYTES = 64 << 20
/** Extenders score 0 to 10, plugins 0 to 100. */
const SCALE = 10
/** The plugin name of an extender's rejection; any event may retry such a pod. */
const EXTENDER = 'Extender'

/** With lower-case keys, see `keysOf`; the other responses too. */
interface FilterResult {
  readonly nodes?: { readonly items?: readonly Node[] | null } | null
  readonly nodenames?: readonly string[] | null
  readonly failednodes?: Readonly<Record<string, string>> | null
  readonly failedandunresolvablenodes?: Readonly<Record<string, string>> | null
  readonly error?: string
}

interface PreemptionResult {
  readonly nodenametometavictims?: Readonly<Record<string, MetaVictims | null>> | null
}

interface MetaVictims {
  readonly pods?: readonly { readonly uid?: string }[] | null
  readonly numpdbviolations?: number
}

export class Extender {
  readonly #config: ExtenderConfiguration
  readonly #client: HttpClient
  readonly #managed: ReadonlySet<string>

  constructor(config: ExtenderConfiguration, client: HttpClient) {
    this.#config = config
    this.#client = client
    this.#managed = new Set((config.managedResources ?? []).map(({ name = '' }) => name))
  }

  /** Scheduling continues without the extender if it fails. */
  get isIgnorable(): boolean {
    return this.#config.ignorable === true
  }

  get binds(): boolean {
    return (this.#config.bindVerb ?? '') !== ''
  }

  get preempts(): boolean {
    return (this.#config.preemptVerb ?? '') !== ''
  }

  isInterestedIn({ spec }: Pod): boolean {
    if (this.#managed.size === 0) return true
    const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
    return containers.some(({ resources }) =>
      [...Object.keys(resources.requests ?? {}), ...Object.keys(resources.limits ?? {})].some((name) =>
        this.#managed.has(name),
      ),
    )
  }

  /** Reduces the search to the nodes that the extender accepts. Throws if the call fails. */
  async filter({ pod, feasible, refusals }: Search): Promise<void> {
    const { filterVerb = '', nodeCacheCapable = false, urlPrefix = '' } = this.#config
    if (filterVerb === '') return
    const answer = await this.#send(filterVerb, this.#requestFor(pod.pod, feasible))
    const result = keysOf(answer, 'ExtenderFilterResult') as FilterResult
    if ((result.error ?? '') !== '') throw new Error(result.error)
    const names = nodeCacheCapable
      ? (result.nodenames ?? feasible.map(({ name }) => name))
      : (result.nodes?.items ?? []).map(({ metadata }) => metadata.name ?? '')
    const byName = new Map(feasible.map((node) => [node.name, node]))
    const left = names.map((name) => {
      const node = byName.get(name)
      if (node !== undefined) return node
      throw new Error(
        `extender "${urlPrefix}" claims a filtered node "${name}" which is not found in the input node list`,
      )
    })
    const refuse = (code: Refusal['code'], nodes: FilterResult['failednodes']): void => {
      for (const [name, reason] of Object.entries(nodes ?? {})) {
        refusals.set(name, { code, reasons: [reason], plugin: EXTENDER })
      }
    }
    refuse('unschedulable', result.failednodes)
    refuse('unresolvable', result.failedandunresolvablenodes)
    // A node without an answer is rejected, and any event may retry the pod.
    for (const { name } of feasible) {
      if (!names.includes(name) && !refusals.has(name))
        refusals.set(name, { code: 'unschedulable', reasons: [], plugin: EXTENDER })
    }
    feasible.splice(0, feasible.length, ...left)
  }

  /** The weighted score by node. Throws if the call fails. */
  async scores({ pod, feasible }: Search): Promise<ReadonlyMap<string, number>> {
    const { prioritizeVerb = '', weight = 0 } = this.#config
    if (prioritizeVerb === '') return new Map()
    const list = (await this.#send(prioritizeVerb, this.#requestFor(pod.pod, feasible))) as object[] | null
    const each = (list ?? []).map((one) => keysOf(one) as { readonly host?: string; readonly score?: number })
    return new Map(each.map(({ host = '', score = 0 }) => [host, score * weight * SCALE]))
  }

  /**
   * The accepted nodes with the extender's victims. Throws if the call fails, or for a victim that is not on the node.
   */
  async preempt({ pod }: PodInfo, candidates: readonly Candidate[], cluster: Cluster): Promise<Candidate[]> {
    const { preemptVerb = '', nodeCacheCapable = false, urlPrefix = '' } = this.#config
    const about = Object.fromEntries(
      candidates.map(({ node, victims, violations }) => {
        const Pods = victims.map((one) => (nodeCacheCapable ? { UID: one.uid } : one.pod))
        return [node, { Pods, NumPDBViolations: violations }]
      }),
    )
    const [NodeNameToVictims, NodeNameToMetaVictims] = nodeCacheCapable ? [null, about] : [about, null]
    const answer = await this.#send(preemptVerb, { Pod: pod, NodeNameToVictims, NodeNameToMetaVictims })
    const { nodenametometavictims: named } = keysOf(answer, 'ExtenderPreemptionResult') as PreemptionResult
    return Object.entries(named ?? {}).map(([node, given]) => {
      const info = cluster.node(node)
      if (info === undefined) throw new Error(`nodeinfo not found for node name "${node}"`)
      const { pods, numpdbviolations: violations = 0 } = keysOf(given ?? {}) as MetaVictims
      const victims = (pods ?? []).map((one) => {
        const { uid = '' } = keysOf(one) as { readonly uid?: string }
        const victim = info.pods.get(uid)
        if (victim !== undefined) return victim
        const claimed = `extender: ${urlPrefix} claims to preempt pod (UID: &{${uid}}) on node: ${node}`
        throw new Error(`${claimed}, but the pod is not found on that node`)
      })
      return { node, victims, violations }
    })
  }

  async bind({ metadata }: Pod, node: string): Promise<Refusal | undefined> {
    const { namespace: PodNamespace = '', name: PodName = '', uid: PodUID = '' } = metadata
    try {
      const binding = { PodName, PodNamespace, PodUID, Node: node }
      const answer = await this.#send(this.#config.bindVerb ?? '', binding)
      const { error = '' } = keysOf(answer, 'ExtenderBindingResult') as {
        readonly error?: string
      }
      return error === '' ? undefined : failed(error)
    } catch (error) {
      return failed((error as Error).message)
    }
  }

  #requestFor(pod: Pod, nodes: readonly NodeInfo[]): object {
    if (this.#config.nodeCacheCapable === true)
      return { Pod: pod, Nodes: null, NodeNames: nodes.map(({ name }) => name) }
    return { Pod: pod, Nodes: { metadata: {}, items: nodes.map(({ node }) => node) }, NodeNames: null }
  }

  async #send(verb: string, body: object): Promise<unknown> {
    const { urlPrefix = '', httpTimeout = '0s' } = this.#config
    const url = `${urlPrefix.replace(/\/+$/, '')}/${verb}`
    const timeoutMs = durationMs(httpTimeout)
    const answer = await this.#client.request({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      timeoutMs: timeoutMs === 0 ? DEFAULT_TIMEOUT_MS : timeoutMs,
    })
    if (answer.status !== 200) {
      answer.discard()
      throw new Error(`failed ${verb} with extender at URL ${url}, code ${answer.status}`)
    }
    return JSON.parse(await answer.text(MAX_ANSWER_BYTES)) as unknown
  }
}

/** Runs in order until no node is left. Returns the error of an extender that is not ignorable. */
export async function filterBy(
  extenders: readonly Extender[],
  search: Search,
  log: Logger,
): Promise<PluginRefusal | undefined> {
  for (const extender of extenders) {
    if (search.feasible.length === 0) return undefined
    try {
      await extender.filter(search)
    } catch (error) {
      if (!extender.isIgnorable) return { ...failed((error as Error).message), plugin: EXTENDER }
      log.info('Skipping extender as it returned error and has ignorable flag set', { err: error })
    }
  }
  return undefined
}

/** The sum of all extenders' scores; a failed one adds none. */
export async function extenderScores(
  extenders: readonly Extender[],
  search: Search,
  log: Logger,
): Promise<ReadonlyMap<string, number>> {
  const totals = new Map<string, number>()
  const results = await Promise.allSettled(extenders.map((extender) => extender.scores(search)))
  for (const one of results) {
    if (one.status === 'rejected')
      log.info("Failed to run extender's priority function. No score given by this extender.", {
        error: one.reason as Error,
      })
    else for (const [node, scores] of one.value) totals.set(node, (totals.get(node) ?? 0) + scores)
  }
  return totals
}

/**
 * Passes preemption candidates through the extenders until none is left. Throws the error of an extender that is not
 * ignorable.
 */
export async function preemptBy(
  extenders: readonly Extender[],
  pod: PodInfo,
  candidates: readonly Candidate[],
  { cluster, log }: { readonly cluster: Cluster; readonly log: Logger },
): Promise<readonly Candidate[]> {
  let left = candidates
  for (const extender of extenders) {
    if (!extender.preempts || left.length === 0 || !extender.isInterestedIn(pod.pod)) continue
    try {
      const found = await extender.preempt(pod, left, cluster)
      const empty = found.find(({ victims }) => victims.length === 0)
      if (empty !== undefined && !extender.isIgnorable)
        throw new Error(`expected at least one victim pod on node "${empty.node}"`)
      left = found.filter(({ victims }) => victims.length > 0)
    } catch (error) {
      if (!extender.isIgnorable) throw error
      log.info('Skipped extender as it returned error and has ignorable flag set', { err: error })
    }
  }
  return left
}

const GO_WORDS: Readonly<Partial<Record<string, string>>> = { boolean: 'bool', number: 'number', string: 'string' }

/** Lower-cases field names: Go writes them as declared and reads them case-insensitively. */
function keysOf(answer: unknown, type = 'ExtenderArgs'): object {
  const is = Array.isArray(answer) ? 'array' : GO_WORDS[typeof answer]
  if (is !== undefined) throw new Error(`json: cannot unmarshal ${is} into Go value of type v1.${type}`)
  const entries = Object.entries((answer as object | null) ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key.toLowerCase(), value as unknown]))
}

export interface ExtenderTools {
  readonly clock: Clock
  readonly readFile: (path: string) => Promise<string>
}

export async function createExtender(
  config: ExtenderConfiguration,
  { clock, readFile }: ExtenderTools,
): Promise<Extender> {
  const { tlsConfig = {}, enableHTTPS = false } = config
  return new Extender(config, createHttpClient({ clock, tls: await tlsOf(tlsConfig, enableHTTPS, readFile) }))
}

async function tlsOf(tls: ExtenderTls, isHttps: boolean, readFile: ExtenderTools['readFile']): Promise<ClientTls> {
  const pem = async (data: string | undefined, file = ''): Promise<string | undefined> => {
    if (data !== undefined) return Buffer.from(data, 'base64').toString()
    return file === '' ? undefined : readFile(file)
  }
  const [ca, certificate, key] = [
    await pem(tls.caData, tls.caFile),
    await pem(tls.certData, tls.certFile),
    await pem(tls.keyData, tls.keyFile),
  ]
  // As upstream: without a CA, TLS verification is off.
  const insecure = tls.insecure === true || (isHttps && ca === undefined)
  return {
    insecure,
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(tls.serverName !== undefined && { serverName: tls.serverName }),
  }
}
