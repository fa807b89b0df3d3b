/** Orders the nodes for the search: alternates between zones, so that a partial search still covers all zones. */
import type { Labels } from '#meta/labels.ts'

const REGION = 'topology.kubernetes.io/region'
const ZONE = 'topology.kubernetes.io/zone'

/** The zone key of a node; also reads the deprecated labels. */
export function zoneOf(labels: Labels): string {
  const region = labels?.[REGION] ?? labels?.['failure-domain.beta.kubernetes.io/region'] ?? ''
  const zone = labels?.[ZONE] ?? labels?.['failure-domain.beta.kubernetes.io/zone'] ?? ''
  return region === '' && zone === '' ? '' : `${region}:\0:${zone}`
}

export class NodeOrder<T> {
  readonly #zones = new Map<string, Map<string, T>>()
  #list: readonly T[] | undefined

  set(name: string, zone: string, node: T): void {
    this.#list = undefined
    let members = this.#zones.get(zone)
    if (members === undefined) this.#zones.set(zone, (members = new Map()))
    members.set(name, node)
  }

  delete(name: string, zone: string): void {
    this.#list = undefined
    const members = this.#zones.get(zone)
    members?.delete(name)
    if (members?.size === 0) this.#zones.delete(zone)
  }

  list(): readonly T[] {
    return (this.#list ??= interleave([...this.#zones.values()].map((members) => [...members.values()])))
  }
}

function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const all: T[] = []
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0)
  for (let at = 0; at < longest; at++) for (const list of lists) if (at < list.length) all.push(list[at] as T)
  return all
}
