/**
 * Tracks the state of our nftables table, and writes the scripts that update all of it or only changed Services. Pure:
 * the caller confirms a script with `applied`; after a failure the next script writes everything.
 */
import { Elements, keyOf } from './elements.ts'
import { isAffinitySet, isServiceChain } from './names.ts'
import type { Rendering } from './rendering.ts'
import { sharedRules } from './shared-chains.ts'
import { familyWord, skeleton, type TableSettings } from './skeleton.ts'

/** The existing content of the table before a full script. */
export interface ExistingTable {
  readonly chains: readonly string[]
  readonly sets: readonly string[]
}

export class Ledger {
  readonly #of: string
  #settings: TableSettings
  readonly #renderings = new Map<string, Rendering>()
  readonly #elements = new Elements(
    () => this.#renderings.keys(),
    (service) => this.#renderings.get(service)?.elements ?? [],
  )
  readonly #chains = new Map<string, readonly string[]>()
  readonly #sets = new Map<string, string>()
  /** The changes for the next script. */
  readonly #changedChains = new Set<string>()
  readonly #newSets = new Set<string>()
  readonly #goneSets = new Set<string>()
  /** Unreferenced chains and since when: the kernel needs a moment to notice. */
  readonly #stale = new Map<string, number>()

  constructor(settings: TableSettings) {
    this.#settings = settings
    this.#of = `${familyWord(settings.family)} ${settings.table}`
  }

  /** Takes effect with the next full script. */
  configure(settings: TableSettings): void {
    this.#settings = settings
  }

  /** Undefined: the Service is deleted. Other Services with the same elements then take over. */
  set(service: string, rendering: Rendering | undefined): void {
    const before = this.#renderings.get(service)
    if (rendering === undefined) this.#renderings.delete(service)
    else this.#renderings.set(service, rendering)
    this.#elements.change(service, before?.elements ?? [], rendering?.elements ?? [])
    this.#setChains(before, rendering)
    this.#setSets(before, rendering)
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

  /** The script for all changes since the last one; undefined: none. */
  changes(): string | undefined {
    const lines = this.#chainLines(this.#changedChains)
    const text = [
      ...[...this.#newSets].map((name) => `add set ${this.#of} ${name} { ${this.#sets.get(name)} ; }`),
      ...lines.added,
      ...this.#elementLines('delete', this.#elements.deleted),
      ...this.#elementLines('add', this.#elements.added),
      ...lines.filled,
      ...[...this.#goneSets].map((name) => `delete set ${this.#of} ${name}`),
    ]
    return text.length === 0 ? undefined : `${text.join('\n')}\n`
  }

  /**
   * The script for everything: removes unwanted objects of ours. `anew` recreates the table, for another layout;
   * session affinity is lost then.
   */
  everything(found: ExistingTable, { anew = false }: { readonly anew?: boolean } = {}): string {
    const wanted = new Set(this.#chains.keys())
    const lines = this.#chainLines(wanted)
    const leftChains = anew ? [] : found.chains.filter((name) => isServiceChain(name) && !wanted.has(name))
    const leftSets = anew ? [] : found.sets.filter((name) => isAffinitySet(name) && !this.#sets.has(name))
    const text = [
      ...(anew ? [`add table ${this.#of}`, `delete table ${this.#of}`] : []),
      ...skeleton(this.#settings),
      ...[...this.#sets].map(([name, declared]) => `add set ${this.#of} ${name} { ${declared} ; }`),
      ...lines.added,
      ...lines.filled,
      ...this.#elementLines('add', this.#elements.shown),
      ...leftChains.map((name) => `flush chain ${this.#of} ${name}`),
      ...leftSets.map((name) => `delete set ${this.#of} ${name}`),
    ]
    for (const name of leftChains) this.#changedChains.add(name)
    return `${text.join('\n')}\n`
  }

  /** The last script was applied. */
  applied(nowMs: number): void {
    for (const name of this.#changedChains) if (!this.#chains.has(name)) this.#stale.set(name, nowMs)
    for (const name of this.#chains.keys()) this.#stale.delete(name)
    this.#elements.applied()
    this.#changedChains.clear()
    this.#newSets.clear()
    this.#goneSets.clear()
  }

  /** Deletes chains that were unreferenced for a while; undefined: none. Confirm with `cleaned`. */
  cleaning(nowMs: number): { readonly text: string; readonly chains: readonly string[] } | undefined {
    const chains = Array.from(this.#stale).flatMap(([name, sinceMs]) => (nowMs - sinceMs >= STALE_MS ? [name] : []))
    if (chains.length === 0) return undefined
    return { text: chains.map((name) => `delete chain ${this.#of} ${name}\n`).join(''), chains }
  }

  cleaned(chains: readonly string[]): void {
    for (const name of chains) this.#stale.delete(name)
  }

  /** Creates all chains before any rule, because rules reference chains. */
  #chainLines(names: Iterable<string>): { readonly added: string[]; readonly filled: string[] } {
    const [added, filled]: [string[], string[]] = [[], []]
    for (const name of names) {
      const rules = this.#chains.get(name)
      // Also deleted ones: a chain that was created and deleted between two scripts never existed.
      added.push(`add chain ${this.#of} ${name}`)
      filled.push(`flush chain ${this.#of} ${name}`)
      for (const rule of rules ?? []) filled.push(`add rule ${this.#of} ${name} ${rule}`)
    }
    return { added, filled }
  }

  #elementLines(verb: 'add' | 'delete', elements: Iterable<string>): string[] {
    const byContainer = new Map<string, string[]>()
    for (const element of elements) {
      const at = element.indexOf(' ')
      const container = element.slice(0, at)
      const text = (verb === 'add' ? element : keyOf(element)).slice(at + 1)
      const list = byContainer.get(container)
      if (list === undefined) byContainer.set(container, [text])
      else list.push(text)
    }
    return Array.from(byContainer, ([name, list]) => `${verb} element ${this.#of} ${name} { ${list.join(', ')} }`)
  }
}

/** Kernels before 6.2 notice unreferenced chains with a delay. */
const STALE_MS = 1000
