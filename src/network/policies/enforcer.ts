/**
 * Keeps the kernel's table in step with the cluster: everything once it is known, then what changes, each in one transaction. What
 * others undo is written anew.
 */
import { Namespaces, Nodes, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { NetworkPolicies } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import { createBackoff } from '#lib/backoff.ts'
import { formatCidr, parseCidr } from '#lib/cidr.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { applyNft, deleteNftTable, listNftTable, type NftOptions } from '#lib/nft.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'

import { showBridged } from './bridged.ts'
import { isIntact } from './check.ts'
import { PolicyModel } from './model.ts'
import { podFacts } from './pod-facts.ts'
import { readPolicy } from './policy.ts'
import { changeScript, NFT_FAMILY, wholeScript } from './script.ts'

export interface EnforcerOptions {
  /** May read pods, namespaces, nodes and network policies of the whole cluster. */
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Whose pods' rules these are. */
  readonly node: string
  /** Of the table; nobody else's. */
  readonly table: string
  /** Where the node's network is, when it is not that of this process: put before programs, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
  /** How often to look whether others undid something; default: every ten seconds. */
  readonly lookMs?: number
}

export interface Enforcer {
  /** When rules first hold, or something is in the way, which the log says. */
  readonly ready: Promise<void>
  /** The kernel has the rules of what was known when they were last written. */
  isHeld(): boolean
  /** Rules stay: pods do not lose them because this program ends. `removePolicies` is for when the pods are gone. */
  stop(): Promise<void>
}

/** Changes that come together are written together. */
const GATHER_MS = 20
const LOOK_MS = 10_000
const RETRY = { baseMs: 500, factor: 2, capMs: 30_000, jitter: 0.2 }

export function startEnforcer(options: EnforcerOptions): Enforcer {
  const enforcement = new Enforcement(options)
  return { ready: enforcement.ready.promise, isHeld: () => enforcement.isHeld(), stop: () => enforcement.stop() }
}

/** Harmless where there is none. */
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
  readonly #rounds: ReturnType<typeof startRounds>
  /** Kinds that are not known yet: without them rules would shut, or open, what they should not. */
  readonly #missing = new Set<Kind>()
  /** The kernel has what the model had when it was last taken. */
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
    const onError = (error: unknown): void => log.error(error, 'Rules of network policies could not be looked at')
    this.#rounds = startRounds({ clock, periodMs: lookMs, onError }, () => this.#look())
  }

  isHeld(): boolean {
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
      log.error(error, 'What network policies are about could not be read', { kind: kind.kind })
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

  /** Until nothing is left to be written. Never rejects. */
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
        log.error(error, 'Rules of network policies could not be written; they are tried again')
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
    if (!this.#isWritten) await this.#showBridged()
    if (script !== '') await applyNft(script, this.#nft)
    this.#isWritten = true
  }

  async #look(): Promise<void> {
    if (this.#model.age()) this.#changed()
    if (!this.#isWritten || this.#writing !== undefined) return
    const { table, log } = this.#options
    await this.#showBridged()
    const listed = await listNftTable(NFT_FAMILY, table, this.#nft)
    // What changed meanwhile is another matter, for the next time.
    if (this.#writing !== undefined || isIntact(listed, this.#model.table)) return
    log.info('Rules of network policies are not as they were written; they are written anew', { table })
    this.#isWritten = false
    this.#changed()
  }

  async #showBridged(): Promise<void> {
    const { log, within } = this.#options
    await showBridged(within).catch((error: unknown) =>
      log.error(
        error,
        'Network policies do not hold between pods of this node: the kernel does not show what bridges carry',
      ),
    )
  }
}

function rangeOf(text: string): readonly { readonly family: 4 | 6; readonly text: string }[] {
  const block = parseCidr(text, { sloppy: true })
  return block === undefined ? [] : [{ family: block.family, text: formatCidr(block) }]
}
