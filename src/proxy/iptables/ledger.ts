/**
 * Tracks the state of our iptables chains, and writes the scripts that update all of them or only changed Services.
 * Shared chains are rewritten each time, because iptables cannot update them atomically in another way. Pure: the
 * caller confirms a script with `applied`; after a failure the next script writes everything.
 */
import type { Route } from '../routing.ts'
import { isServiceChain } from './names.ts'
import { type Portals, renderChains, renderPortals } from './rendering.ts'
import {
  CANARY,
  chainLine,
  filterRules,
  type IptablesSettings,
  isJump,
  type Jump,
  JUMPS,
  jumpRule,
  KUBELET_JUMPS,
  moreChains,
  natHead,
  natTail,
  TOP_CHAINS,
} from './skeleton.ts'

/** Output of `iptables-save`, at least chains and the rules of built-in chains. */
export interface SavedRules {
  readonly nat: readonly string[]
  readonly filter: readonly string[]
}

export interface RuleCount {
  readonly written: number
  readonly total: number
}

export interface Script {
  readonly text: string
  readonly counts: Readonly<Record<'nat' | 'filter', RuleCount>>
}

/** Comments are omitted above this number of endpoints, as upstream. */
const MANY_ENDPOINTS = 1000

interface ServiceState {
  readonly routes: readonly Route[]
  readonly portals: Portals
  /** Rules in its own chains. */
  readonly rules: number
  readonly endpoints: number
}

export class IptablesLedger {
  #settings: IptablesSettings
  readonly #services = new Map<string, ServiceState>()
  /** Services changed since the last applied script, with their previous chains. */
  readonly #changed = new Map<string, readonly string[]>()
  #endpoints = 0
  #ownRules = 0

  constructor(settings: IptablesSettings) {
    this.#settings = settings
  }

  /** Takes effect with the next full script. */
  configure(settings: IptablesSettings): void {
    this.#settings = settings
  }

  /** Empty: the Service is deleted. */
  set(service: string, routes: readonly Route[]): void {
    const before = this.#services.get(service)
    if (!this.#changed.has(service)) this.#changed.set(service, before === undefined ? [] : this.#chainsOf(before))
    this.#count(before, -1)
    if (routes.length === 0) this.#services.delete(service)
    else this.#services.set(service, this.#stateOf(routes))
    this.#count(this.#services.get(service), 1)
  }

  /** The script for all changes since the last one; undefined: none. */
  changes(): Script | undefined {
    if (this.#changed.size === 0) return undefined
    const [chains, rules, wanted] = [[], [], new Set()] as [string[], string[], Set<string>]
    for (const service of this.#changed.keys()) this.#writeChains(service, { chains, rules, wanted })
    const gone = new Set([...this.#changed.values()].flat().filter((name) => !wanted.has(name)))
    return this.#script({ chains, rules, gone, jumps: [], missing: [], canaries: false })
  }

  /** The script for everything: removes unwanted chains of ours. */
  everything(found: SavedRules): Script {
    const [chains, rules, wanted] = [[], [], new Set()] as [string[], string[], Set<string>]
    for (const service of this.#services.keys()) this.#writeChains(service, { chains, rules, wanted })
    const left = chainsIn(found.nat).filter((name) => isServiceChain(name) && !wanted.has(name))
    const jumps = [...JUMPS, ...KUBELET_JUMPS].filter((one) => !found[one.table].some((line) => isJump(line, one)))
    const known = new Set(chainsIn(found.filter))
    // Shared chains are created but not flushed.
    const missing = new Set(KUBELET_JUMPS.map(({ to }) => to).filter((name) => !known.has(name)))
    return this.#script({ chains, rules, gone: new Set(left), jumps, missing: [...missing], canaries: true })
  }

  /** The last script was applied. */
  applied(): void {
    this.#changed.clear()
  }

  get #explains(): boolean {
    return this.#endpoints <= MANY_ENDPOINTS
  }

  #stateOf(routes: readonly Route[]): ServiceState {
    const chains = renderChains(routes, this.#settings, false)
    return {
      routes,
      portals: renderPortals(routes),
      rules: chains.values().reduce((sum, { length }) => sum + length, 0),
      endpoints: routes.reduce((sum, { endpoints }) => sum + endpoints, 0),
    }
  }

  #chainsOf({ routes }: ServiceState): string[] {
    return [...renderChains(routes, this.#settings, false).keys()]
  }

  #count(state: ServiceState | undefined, sign: 1 | -1): void {
    this.#endpoints += sign * (state?.endpoints ?? 0)
    this.#ownRules += sign * (state?.rules ?? 0)
  }

  #writeChains(service: string, into: { chains: string[]; rules: string[]; wanted: Set<string> }): void {
    const state = this.#services.get(service)
    if (state === undefined) return
    for (const [name, lines] of renderChains(state.routes, this.#settings, this.#explains)) {
      into.wanted.add(name)
      into.chains.push(chainLine(name))
      for (const line of lines) into.rules.push(line)
    }
  }

  #script(parts: {
    readonly chains: readonly string[]
    readonly rules: readonly string[]
    readonly gone: ReadonlySet<string>
    readonly jumps: readonly Jump[]
    /** Chains of the table `filter` that the kubelet shares. */
    readonly missing: readonly string[]
    readonly canaries: boolean
  }): Script {
    const { chains, rules, gone, jumps, missing, canaries } = parts
    const canary = canaries ? [chainLine(CANARY)] : []
    const firewall = new Set([...missing, ...moreChains(this.#settings)])
    const jumping = (table: Jump['table']): string[] => jumps.filter((one) => one.table === table).map(jumpRule)
    const own = { filter: this.#portals('filter', filterRules(this.#settings), []), nat: this.#natPortals() }
    const text = [
      ...(canaries ? ['*mangle', ...canary, 'COMMIT'] : []),
      '*filter',
      ...canary,
      ...[...TOP_CHAINS.filter, ...firewall].map(chainLine),
      ...jumping('filter'),
      ...own.filter,
      'COMMIT',
      '*nat',
      ...canary,
      ...TOP_CHAINS.nat.map(chainLine),
      ...chains,
      ...[...gone].map(chainLine),
      ...jumping('nat'),
      ...own.nat,
      ...rules,
      ...[...gone].map((name) => `-X ${name}`),
      'COMMIT',
      '',
    ].join('\n')
    const filter = own.filter.length
    const nat = { written: own.nat.length + rules.length, total: own.nat.length + this.#ownRules }
    return { text, counts: { filter: { written: filter, total: filter }, nat } }
  }

  #natPortals(): string[] {
    return this.#portals('nat', natHead(this.#settings), natTail(this.#settings))
  }

  #portals(table: 'nat' | 'filter', head: readonly string[], tail: readonly string[]): string[] {
    const lines = [...head]
    for (const { portals } of this.#services.values()) for (const line of portals[table]) lines.push(line)
    lines.push(...tail)
    return lines
  }
}

/** Chain names in the output of `iptables-save`. */
export function chainsIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => (line.startsWith(':') ? [line.slice(1, line.indexOf(' '))] : []))
}
