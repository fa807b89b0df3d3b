/**
 * What our chains hold, and the scripts that bring them from what they are to what they should be: all of it at once, or only what
 * the changes of some Services touch. Chains that all Services share are written anew each time, as iptables has no other way
 * that keeps them whole. Pure: whoever applied a script says so (`applied`); after a failure all of it is due.
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

/** Of a table before it is filled: lines of `iptables-save`, at least of chains and of rules in the kernel's own. */
export interface Found {
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

/** Comments are left out where there are more endpoints, as upstream does. */
const MANY_ENDPOINTS = 1000

interface Held {
  readonly routes: readonly Route[]
  readonly portals: Portals
  /** Rules in chains of its own. */
  readonly rules: number
  readonly endpoints: number
}

export class IptablesLedger {
  #settings: IptablesSettings
  readonly #held = new Map<string, Held>()
  /** Services that have changed since a script was applied, with the chains they had then. */
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

  /** None: the Service has gone. */
  set(service: string, routes: readonly Route[]): void {
    const before = this.#held.get(service)
    if (!this.#changed.has(service)) this.#changed.set(service, before === undefined ? [] : this.#chainsOf(before))
    this.#count(before, -1)
    if (routes.length === 0) this.#held.delete(service)
    else this.#held.set(service, this.#hold(routes))
    this.#count(this.#held.get(service), 1)
  }

  /** Brings about what has changed since the last one; undefined: nothing has. */
  changes(): Script | undefined {
    if (this.#changed.size === 0) return undefined
    const [chains, rules, wanted] = [[], [], new Set()] as [string[], string[], Set<string>]
    for (const service of this.#changed.keys()) this.#writeChains(service, { chains, rules, wanted })
    const gone = new Set([...this.#changed.values()].flat().filter((name) => !wanted.has(name)))
    return this.#script({ chains, rules, gone, jumps: [], missing: [], canaries: false })
  }

  /** Brings about everything, whatever is there: what is ours and not wanted goes. */
  everything(found: Found): Script {
    const [chains, rules, wanted] = [[], [], new Set()] as [string[], string[], Set<string>]
    for (const service of this.#held.keys()) this.#writeChains(service, { chains, rules, wanted })
    const left = chainsIn(found.nat).filter((name) => isServiceChain(name) && !wanted.has(name))
    const jumps = [...JUMPS, ...KUBELET_JUMPS].filter((one) => !found[one.table].some((line) => isJump(line, one)))
    const known = new Set(chainsIn(found.filter))
    // What others fill as well is made, and not emptied.
    const missing = new Set(KUBELET_JUMPS.map(({ to }) => to).filter((name) => !known.has(name)))
    return this.#script({ chains, rules, gone: new Set(left), jumps, missing: [...missing], canaries: true })
  }

  /** The last script, of either kind, is in the kernel. */
  applied(): void {
    this.#changed.clear()
  }

  get #explains(): boolean {
    return this.#endpoints <= MANY_ENDPOINTS
  }

  #hold(routes: readonly Route[]): Held {
    const chains = renderChains(routes, this.#settings, false)
    return {
      routes,
      portals: renderPortals(routes),
      rules: chains.values().reduce((sum, { length }) => sum + length, 0),
      endpoints: routes.reduce((sum, { endpoints }) => sum + endpoints, 0),
    }
  }

  #chainsOf({ routes }: Held): string[] {
    return [...renderChains(routes, this.#settings, false).keys()]
  }

  #count(held: Held | undefined, sign: 1 | -1): void {
    this.#endpoints += sign * (held?.endpoints ?? 0)
    this.#ownRules += sign * (held?.rules ?? 0)
  }

  #writeChains(service: string, into: { chains: string[]; rules: string[]; wanted: Set<string> }): void {
    const held = this.#held.get(service)
    if (held === undefined) return
    for (const [name, lines] of renderChains(held.routes, this.#settings, this.#explains)) {
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
    /** Chains of the table `filter` that are not ours alone. */
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
    for (const { portals } of this.#held.values()) for (const line of portals[table]) lines.push(line)
    lines.push(...tail)
    return lines
  }
}

/** Of lines of `iptables-save`. */
export function chainsIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => (line.startsWith(':') ? [line.slice(1, line.indexOf(' '))] : []))
}
