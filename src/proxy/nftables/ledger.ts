/**
 * What is in a table of ours, and the scripts that bring it from what it is to what it should be: all of it at once, or only what
 * the changes of some Services touch. Pure: whoever applied a script says so (`applied`); after a failure all of it is due.
 */
import { isAffinitySet, isServiceChain } from './names.ts'
import type { Rendering } from './rendering.ts'
import { sharedRules } from './shared-chains.ts'
import { familyWord, skeleton, type TableSettings } from './skeleton.ts'

/** What was found in the table before it is filled anew. */
export interface Found {
  readonly chains: readonly string[]
  readonly sets: readonly string[]
}

export interface Script {
  readonly text: string
  /** Of rules, as upstream's metric counts them. */
  readonly rules: number
}

/** Who shows an element, and who else would. */
interface Claim {
  value: string
  readonly owners: string[]
}

export class Ledger {
  readonly #of: string
  #settings: TableSettings
  readonly #renderings = new Map<string, Rendering>()
  /** By `<container> <key>`. */
  readonly #claims = new Map<string, Claim>()
  readonly #chains = new Map<string, readonly string[]>()
  readonly #sets = new Map<string, string>()
  /** What the next script has to do. */
  readonly #deleted = new Map<string, string>()
  readonly #added = new Map<string, string>()
  readonly #changedChains = new Set<string>()
  readonly #newSets = new Set<string>()
  readonly #goneSets = new Set<string>()
  /** Chains that nothing leads to any more, and since when: the kernel may take a moment to notice. */
  readonly #stale = new Map<string, number>()

  constructor(settings: TableSettings) {
    this.#settings = settings
    this.#of = `${familyWord(settings.family)} ${settings.table}`
  }

  get services(): number {
    return this.#renderings.size
  }

  get rules(): number {
    let count = 0
    for (const rules of this.#chains.values()) count += rules.length
    return count
  }

  /** Takes effect with the next full script. */
  configure(settings: TableSettings): void {
    this.#settings = settings
  }

  /** Undefined: the Service has gone. Those who could not show an element because of it show theirs now. */
  set(service: string, rendering: Rendering | undefined): void {
    const before = this.#renderings.get(service)
    if (rendering === undefined) this.#renderings.delete(service)
    else this.#renderings.set(service, rendering)
    this.#setElements(service, before?.elements ?? [], rendering?.elements ?? [])
    this.#setChains(before, rendering)
    this.#setSets(before, rendering)
  }

  #setElements(service: string, before: readonly string[], after: readonly string[]): void {
    if (before.length === after.length && before.every((element, at) => element === after[at])) return
    const [old, wanted] = [new Map(before.map(parted)), new Map(after.map(parted))]
    for (const key of old.keys()) if (!wanted.has(key)) this.#release(service, key)
    for (const [key, value] of wanted) if (old.get(key) !== value) this.#claim(service, key, value)
  }

  /** Who came first shows theirs, and goes on to when it changes. */
  #claim(service: string, key: string, value: string): void {
    const claim = this.#claims.get(key)
    if (claim === undefined) {
      this.#claims.set(key, { value, owners: [service] })
      this.#show(key, value)
    } else if (claim.owners[0] === service) this.#turn(key, claim, value)
    else if (!claim.owners.includes(service)) claim.owners.push(service)
  }

  #release(service: string, key: string): void {
    const claim = this.#claims.get(key)
    if (claim === undefined) return
    const wasShown = claim.owners[0] === service
    claim.owners.splice(claim.owners.indexOf(service), 1)
    const next = claim.owners[0]
    if (next === undefined) {
      this.#claims.delete(key)
      this.#hide(key, claim.value)
    } else if (wasShown) this.#turn(key, claim, this.#wanted(next, key))
  }

  #turn(key: string, claim: Claim, value: string): void {
    if (claim.value === value) return
    this.#hide(key, claim.value)
    claim.value = value
    this.#show(key, value)
  }

  #wanted(service: string, key: string): string {
    const own = this.#renderings.get(service)?.elements.find((element) => parted(element)[0] === key)
    return own === undefined ? '' : parted(own)[1]
  }

  #show(key: string, value: string): void {
    if (this.#deleted.get(key) === value) this.#deleted.delete(key)
    else this.#added.set(key, value)
  }

  #hide(key: string, value: string): void {
    if (this.#added.has(key)) this.#added.delete(key)
    else this.#deleted.set(key, value)
  }

  #setChains(before: Rendering | undefined, after: Rendering | undefined): void {
    for (const [name, rules] of after?.chains ?? []) this.#setChain(name, rules)
    for (const name of after?.shared ?? [])
      if (!this.#chains.has(name)) this.#setChain(name, sharedRules(name, this.#settings.family))
    for (const name of before?.chains.keys() ?? []) {
      if (after?.chains.has(name) === true) continue
      this.#chains.delete(name)
      this.#changedChains.add(name)
    }
  }

  #setChain(name: string, rules: readonly string[]): void {
    const known = this.#chains.get(name)
    if (known?.length === rules.length && known.every((rule, at) => rule === rules[at])) return
    this.#chains.set(name, rules)
    this.#changedChains.add(name)
  }

  #setSets(before: Rendering | undefined, after: Rendering | undefined): void {
    for (const [name, declared] of after?.sets ?? []) {
      if (!this.#sets.has(name) && !this.#goneSets.delete(name)) this.#newSets.add(name)
      this.#sets.set(name, declared)
    }
    for (const name of before?.sets.keys() ?? []) {
      if (after?.sets.has(name) === true) continue
      this.#sets.delete(name)
      if (!this.#newSets.delete(name)) this.#goneSets.add(name)
    }
  }

  /** Brings about what has changed since the last one; undefined: nothing has. */
  changes(): Script | undefined {
    const { lines, rules } = this.#chainLines(this.#changedChains)
    const text = [
      ...[...this.#newSets].map((name) => `add set ${this.#of} ${name} { ${this.#sets.get(name)} ; }`),
      ...lines.added,
      ...this.#elementLines('delete', this.#deleted),
      ...this.#elementLines('add', this.#added),
      ...lines.filled,
      ...[...this.#goneSets].map((name) => `delete set ${this.#of} ${name}`),
    ]
    return text.length === 0 ? undefined : { text: `${text.join('\n')}\n`, rules }
  }

  /**
   * Brings about everything, whatever is there: what is ours and not wanted goes. `anew`: from nothing, for tables that others
   * left in another shape; who came to which endpoint is forgotten then.
   */
  everything(found: Found, { anew = false }: { readonly anew?: boolean } = {}): Script {
    const wanted = new Set(this.#chains.keys())
    const { lines, rules } = this.#chainLines(wanted)
    const leftChains = anew ? [] : found.chains.filter((name) => isServiceChain(name) && !wanted.has(name))
    const leftSets = anew ? [] : found.sets.filter((name) => isAffinitySet(name) && !this.#sets.has(name))
    const elements = new Map(Array.from(this.#claims, ([key, { value }]) => [key, value]))
    const text = [
      ...(anew ? [`add table ${this.#of}`, `delete table ${this.#of}`] : []),
      ...skeleton(this.#settings),
      ...[...this.#sets].map(([name, declared]) => `add set ${this.#of} ${name} { ${declared} ; }`),
      ...lines.added,
      ...lines.filled,
      ...this.#elementLines('add', elements),
      ...leftChains.map((name) => `flush chain ${this.#of} ${name}`),
      ...leftSets.map((name) => `delete set ${this.#of} ${name}`),
    ]
    for (const name of leftChains) this.#changedChains.add(name)
    return { text: `${text.join('\n')}\n`, rules }
  }

  /** The last script, of either kind, is in the kernel. */
  applied(nowMs: number): void {
    for (const name of this.#changedChains) if (!this.#chains.has(name)) this.#stale.set(name, nowMs)
    for (const name of this.#chains.keys()) this.#stale.delete(name)
    this.#deleted.clear()
    this.#added.clear()
    this.#changedChains.clear()
    this.#newSets.clear()
    this.#goneSets.clear()
  }

  /** Removes chains that have been empty for a while; undefined: there are none. `cleaned` says that it came about. */
  cleaning(nowMs: number): { readonly text: string; readonly chains: readonly string[] } | undefined {
    const chains = Array.from(this.#stale).flatMap(([name, sinceMs]) => (nowMs - sinceMs >= STALE_MS ? [name] : []))
    if (chains.length === 0) return undefined
    return { text: chains.map((name) => `delete chain ${this.#of} ${name}\n`).join(''), chains }
  }

  cleaned(chains: readonly string[]): void {
    for (const name of chains) this.#stale.delete(name)
  }

  get hasStale(): boolean {
    return this.#stale.size > 0
  }

  /** All chains before any rule, because rules lead from one to another. */
  #chainLines(names: Iterable<string>): {
    readonly lines: { readonly added: string[]; readonly filled: string[] }
    readonly rules: number
  } {
    const [added, filled]: [string[], string[]] = [[], []]
    let count = 0
    for (const name of names) {
      const rules = this.#chains.get(name)
      // Also of those that go: one that came and went between two scripts was never there.
      added.push(`add chain ${this.#of} ${name}`)
      filled.push(`flush chain ${this.#of} ${name}`)
      for (const rule of rules ?? []) filled.push(`add rule ${this.#of} ${name} ${rule}`)
      count += rules?.length ?? 0
    }
    return { lines: { added, filled }, rules: count }
  }

  #elementLines(verb: 'add' | 'delete', elements: ReadonlyMap<string, string>): string[] {
    const byContainer = new Map<string, string[]>()
    for (const [key, value] of elements) {
      const at = key.indexOf(' ')
      const container = key.slice(0, at)
      const text = verb === 'add' && value !== '' ? `${key.slice(at + 1)} : ${value}` : key.slice(at + 1)
      const list = byContainer.get(container)
      if (list === undefined) byContainer.set(container, [text])
      else list.push(text)
    }
    return Array.from(byContainer, ([name, list]) => `${verb} element ${this.#of} ${name} { ${list.join(', ')} }`)
  }
}

/** Kernels before 6.2 know only a moment later that nothing leads to a chain any more. */
const STALE_MS = 1000

function parted(element: string): [key: string, value: string] {
  const at = element.indexOf(' : ')
  return at < 0 ? [element, ''] : [element.slice(0, at), element.slice(at + 3)]
}
