/** Chooses the kinds whose objects users write, and pairs the kinds of two moments. Pure. */
import type { ServedKind } from '#client/discovery.ts'

/** The server and controllers write them all the time. */
const NOISE: ReadonlySet<string> = new Set([
  'events',
  'events.events.k8s.io',
  'leases.coordination.k8s.io',
  'endpoints',
  'endpointslices.discovery.k8s.io',
])

/** Kinds that undo never writes. */
const NOT_UNDONE: ReadonlySet<string> = new Set([...NOISE, 'pods', 'nodes'])

/** `deployments.apps`, or `pods` in the core group. */
export function resourceOf({ plural, group }: Pick<ServedKind, 'plural' | 'group'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

export function canBeUndone(kind: ServedKind): boolean {
  return !NOT_UNDONE.has(resourceOf(kind))
}

export interface UserKindOptions {
  /** Only kinds whose objects have a namespace. */
  readonly namespaced: boolean
}

/** The kinds in one version each: those that the server lists and creates. */
export function userKinds(kinds: readonly ServedKind[], { namespaced }: UserKindOptions): ServedKind[] {
  const chosen = new Map<string, ServedKind>()
  for (const kind of kinds) {
    const resource = resourceOf(kind)
    const { verbs } = kind
    if (NOISE.has(resource) || (namespaced && !kind.namespaced)) continue
    if (!verbs.includes('list') || !verbs.includes('create')) continue
    const known = chosen.get(resource)
    if (known === undefined || (kind.isPreferred && !known.isPreferred)) chosen.set(resource, kind)
  }
  return [...chosen.values()]
}

/** A kind as each of two moments serves it; undefined: the moment does not. */
export interface KindPair {
  readonly before: ServedKind | undefined
  readonly after: ServedKind | undefined
}

/** Pairs kinds by resource, in the same version if both moments serve it. */
export function pairKinds(
  wanted: readonly ServedKind[],
  before: readonly ServedKind[],
  after: readonly ServedKind[],
): KindPair[] {
  const pairs = new Map<string, KindPair>()
  for (const kind of wanted) {
    if (pairs.has(resourceOf(kind))) continue
    pairs.set(resourceOf(kind), { before: servedAs(kind, before), after: servedAs(kind, after) })
  }
  return [...pairs.values()]
}

function servedAs(kind: ServedKind, served: readonly ServedKind[]): ServedKind | undefined {
  const same = served.filter((one) => resourceOf(one) === resourceOf(kind))
  return same.find(({ version }) => version === kind.version) ?? same.find(({ isPreferred }) => isPreferred) ?? same[0]
}
