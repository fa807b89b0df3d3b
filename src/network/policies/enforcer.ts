/**
 * Keeps the kernel's table in sync with the cluster: first the whole table once all caches are synced, then each
 * change, always in one transaction. Restores the table if another program has changed it.
 */
import { Namespaces, Nodes, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { NetworkPolicies } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import { createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { formatCidr, parseCidr } from '#lib/net/cidr.ts'
import { applyNft, deleteNftTable, listNftTable, type NftOptions } from '#lib/net/nft.ts'
import { runPeriodically } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'

import { enableBridgeNetfilter } from './bridge-netfilter.ts'
import { isIntact } from './check.ts'
import { PolicyModel } from './model.ts'
import { podFacts } from './pod-facts.ts'
import { readPolicy } from './policy.ts'
import { changeScript, NFT_FAMILY, wholeScript } from './script.ts'

export interface EnforcerOptions {
  /** Needs to list and watch pods, namespaces, nodes and network policies of all namespaces. */
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The node whose pods the rules protect. */
  readonly node: string
  /** The name of the nftables table, which no other program uses. */
  readonly table: string
  /** Prefixes programs to run in the node's network namespace, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
  /** The period of checks for foreign changes. Default: ten seconds. */
  readonly lookMs?: number
}

export interface Enforcer {
  /** Resolves when rules are first applied, or after a logged failure. */
  readonly ready: Promise<void>
  /** Whether the kernel has the latest rules. */
  isApplied(): boolean
  /** Keeps the rules: pods stay protected when this program ends. `removePolicies` removes them. */
  stop(): Promise<void>
}

/** Changes within this time are written together. */
const GATHER_MS = 20
const LOOK_MS = 10_000
const RETRY = { baseMs: 500, factor: 2, capMs: 30_000, jitter: 0.2 }

export function startEnforcer(options: EnforcerOptions): Enforcer {
  const enforcement = new Enforcement(options)
  return { ready: enforcement.ready.promise, isApplied: () => enforcement.isApplied(), stop: () => enforcement.stop() }
}

/** Does nothing if the table does not exist. */
export function removePolicies(table: string, options: NftOptions = {}): Promise<void> {
  return deleteNftTable(NFT_FAMILY, table, options)
}

class Enforcement {
  readonly ready = Promise.withResolvers<void>()
  readonly #options: EnforcerOptions
  readonly #nft: NftOptions
  readonly #model = new PolicyModel()
  readonly #end = new AbortController()
  readonly #following: Promise<unknown>
  readonly #rounds: ReturnType<typeof runPeriodically>
  /** Kinds that are not synced yet: without them rules would allow or deny too much. */
  readonly #missing = new Set<Kind>()
  /** The kernel has the model's last state. */
  #isWritten = false
  #writing: Promise<void> | undefined
  #isWaiting = false

  constructor(options: EnforcerOptions) {
    this.#options = options
    const { clock, log, node, within, lookMs = LOOK_MS } = options
    this.#nft = within === undefined ? {} : { within }
    const model = this.#model
    this.#following = Promise.all([
      this.#follow(Pods, (key, pod) => model.setPod(key, pod && podFacts(pod, node))),
      this.#follow(Namespaces, (key, namespace) =>
        model.setNamespace(key, namespace && (namespace.metadata.labels ?? {})),
      ),
      this.#follow(NetworkPolicies, (key, policy) => model.setPolicy(key, policy && readPolicy(policy))),
      this.#follow(
        Nodes,
        (_, found) => {
          const { podCIDR, podCIDRs = podCIDR === undefined ? [] : [podCIDR] } = found?.spec ?? {}
          model.setRanges(podCIDRs.flatMap(rangeOf))
        },
        { fieldSelector: `metadata.name=${node}` },
      ),
    ])
    const onError = (error: unknown): void => log.error(error, 'Failed to check network policy rules')
    this.#rounds = runPeriodically({ clock, periodMs: lookMs, onError }, () => this.#check())
  }

  isApplied(): boolean {
    return this.#isWritten
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#rounds.stop()
    await this.#following
    await this.#writing
    this.ready.resolve()
  }

  async #follow<T extends KubeObject>(
    kind: Kind<T>,
    set: (key: string, object: T | undefined) => void,
    selection: { readonly fieldSelector?: string } = {},
  ): Promise<void> {
    const { client, random, log } = this.#options
    this.#missing.add(kind)
    let known = new Set<string>()
    const failed = (error: unknown): void => {
      this.ready.resolve()
      log.error(error, 'Failed to watch objects for network policies', { kind: kind.kind })
    }
    await follow(
      { client, kind, random, signal: this.#end.signal, selection },
      {
        replace: (objects) => {
          const now = new Set(objects.map(objectKey))
          for (const key of known.difference(now)) set(key, undefined)
          for (const object of objects) set(objectKey(object), object)
          known = now
          this.#missing.delete(kind)
          this.#changed()
        },
        change: ({ type, object }) => {
          const key = objectKey(object)
          if (type === 'DELETED') known.delete(key)
          else known.add(key)
          set(key, type === 'DELETED' ? undefined : object)
          this.#changed()
        },
        failed,
      },
    )
  }

  #changed(): void {
    if (this.#missing.size > 0) return
    if (this.#writing === undefined) this.#writing = this.#writeAll()
    else this.#isWaiting = true
  }

  /** Writes until nothing is pending. Never rejects. */
  async #writeAll(): Promise<void> {
    const { clock, random, log } = this.#options
    const { signal } = this.#end
    const backoff = createBackoff(random, RETRY)
    do {
      await sleep(clock, GATHER_MS, signal).catch(() => undefined)
      this.#isWaiting = false
      if (signal.aborted) break
      try {
        await this.#write()
        backoff.reset()
      } catch (error) {
        this.#isWritten = false
        this.#isWaiting = true
        log.error(error, 'Failed to write network policy rules; retrying')
      }
      this.ready.resolve()
      if (!this.#isWritten) await sleep(clock, backoff.next(), signal).catch(() => undefined)
    } while (this.#isWaiting)
    this.#writing = undefined
  }

  async #write(): Promise<void> {
    const { table } = this.#options
    const state = this.#model.settle()
    const touched = state.take()
    const script = this.#isWritten ? changeScript(table, state, touched) : wholeScript(table, state)
    if (!this.#isWritten) await this.#enableBridgeNetfilter()
    if (script !== '') await applyNft(script, this.#nft)
    this.#isWritten = true
  }

  async #check(): Promise<void> {
    if (this.#model.age()) this.#changed()
    if (!this.#isWritten || this.#writing !== undefined) return
    const { table, log } = this.#options
    await this.#enableBridgeNetfilter()
    const listed = await listNftTable(NFT_FAMILY, table, this.#nft)
    // A change during the check makes its result obsolete.
    if (this.#writing !== undefined || isIntact(listed, this.#model.table)) return
    log.info('Another program changed the network policy rules; rewriting the table', { table })
    this.#isWritten = false
    this.#changed()
  }

  async #enableBridgeNetfilter(): Promise<void> {
    const { log, within } = this.#options
    await enableBridgeNetfilter(within).catch((error: unknown) =>
      log.error(error, 'Failed to enable br_netfilter; network policies do not apply between pods of this node'),
    )
  }
}

function rangeOf(text: string): readonly { readonly family: 4 | 6; readonly text: string }[] {
  const block = parseCidr(text, { sloppy: true })
  return block === undefined ? [] : [{ family: block.family, text: formatCidr(block) }]
}
