/**
 * HTTP extenders: others who have a say, asked after the plugins about the nodes that are left. They speak upstream's
 * `k8s.io/kube-scheduler/extender/v1`.
 */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import type { Logger } from '#lib/log.ts'
import { durationMs } from '#meta/duration.ts'

import type { ExtenderConfiguration, ExtenderTls } from './configuration/configuration.ts'
import { failed, type PluginRefusal, type Refusal, type Search } from './framework.ts'
import type { NodeInfo } from './node-info.ts'

const DEFAULT_TIMEOUT_MS = 5000
const MAX_ANSWER_BYTES = 64 << 20
/** Theirs are 0 to 10, ours 0 to 100. */
const SCALE = 10
/** Whom a refusal is from; any news may change an extender's mind. */
const EXTENDER = 'Extender'

interface FilterResult {
  readonly nodes?: { readonly items?: readonly Node[] | null } | null
  readonly nodenames?: readonly string[] | null
  readonly failedNodes?: Readonly<Record<string, string>> | null
  readonly failedAndUnresolvableNodes?: Readonly<Record<string, string>> | null
  readonly error?: string
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

  /** The others go on without it when it cannot be asked. */
  get isIgnorable(): boolean {
    return this.#config.ignorable === true
  }

  get binds(): boolean {
    return (this.#config.bindVerb ?? '') !== ''
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

  /** Leaves in the search the nodes that it lets. Throws when it cannot be asked. */
  async filter({ pod, feasible, refusals }: Search): Promise<void> {
    const { filterVerb = '', nodeCacheCapable = false, urlPrefix = '' } = this.#config
    if (filterVerb === '') return
    const result = (await this.#send(filterVerb, this.#about(pod.pod, feasible))) as FilterResult
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
    const refuse = (code: Refusal['code'], nodes: FilterResult['failedNodes']): void => {
      for (const [name, reason] of Object.entries(nodes ?? {})) {
        refusals.set(name, { code, reasons: [reason], plugin: EXTENDER })
      }
    }
    refuse('unschedulable', result.failedNodes)
    refuse('unresolvable', result.failedAndUnresolvableNodes)
    // Those of which it says nothing are not let either, and it waits for anything.
    for (const { name } of feasible) {
      if (!names.includes(name) && !refusals.has(name))
        refusals.set(name, { code: 'unschedulable', reasons: [], plugin: EXTENDER })
    }
    feasible.splice(0, feasible.length, ...left)
  }

  /** Points by node, with its weight. Throws when it cannot be asked. */
  async points({ pod, feasible }: Search): Promise<ReadonlyMap<string, number>> {
    const { prioritizeVerb = '', weight = 0 } = this.#config
    if (prioritizeVerb === '') return new Map()
    const list = (await this.#send(prioritizeVerb, this.#about(pod.pod, feasible))) as
      | { readonly host: string; readonly score: number }[]
      | null
    return new Map((list ?? []).map(({ host, score }) => [host, score * weight * SCALE]))
  }

  async bind({ metadata }: Pod, node: string): Promise<Refusal | undefined> {
    const { namespace: podNamespace = '', name: podName = '', uid: podUID = '' } = metadata
    try {
      const binding = { podName, podNamespace, podUID, node }
      const { error = '' } = (await this.#send(this.#config.bindVerb ?? '', binding)) as { readonly error?: string }
      return error === '' ? undefined : failed(error)
    } catch (error) {
      return failed((error as Error).message)
    }
  }

  #about(pod: Pod, nodes: readonly NodeInfo[]): object {
    if (this.#config.nodeCacheCapable === true) return { pod, nodenames: nodes.map(({ name }) => name) }
    return { pod, nodes: { metadata: {}, items: nodes.map(({ node }) => node) } }
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

/** In order, until nothing is left. Returns what went wrong with one that is not ignorable. */
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

/** Of all together; who cannot be asked gives none. */
export async function pointsBy(
  extenders: readonly Extender[],
  search: Search,
  log: Logger,
): Promise<ReadonlyMap<string, number>> {
  const totals = new Map<string, number>()
  const asked = await Promise.allSettled(extenders.map((extender) => extender.points(search)))
  for (const one of asked) {
    if (one.status === 'rejected')
      log.info("Failed to run extender's priority function. No score given by this extender.", {
        error: one.reason as Error,
      })
    else for (const [node, points] of one.value) totals.set(node, (totals.get(node) ?? 0) + points)
  }
  return totals
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
  // As upstream: without an authority nobody could be trusted, so everybody is.
  const insecure = tls.insecure === true || (isHttps && ca === undefined)
  return {
    insecure,
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(tls.serverName !== undefined && { serverName: tls.serverName }),
  }
}
