/**
 * Parses resource names as users type them: `po`, `pods`, `deploy.apps`, `Pod`, `deployments.v1.apps`. Full names
 * always win over short names, so that no custom resource can take the name of another resource. Pure.
 */
import type { ServedKind } from '#client/discovery.ts'

export interface NamedKind {
  readonly kind: ServedKind
  /** Other resources, as `resource.group`, that have the same short name. */
  readonly alsoNamed: readonly string[]
}

interface ResourceName {
  readonly resource: string
  /** Empty: any. Without a version, the beginning of a group is enough. */
  readonly group: string
  /** Empty: the preferred one. */
  readonly version: string
}

/** The order is client-go's: names of resources with a version, names of resources, then kinds in the same way. */
export function findNamed(kinds: readonly ServedKind[], text: string): NamedKind | undefined {
  const names = namesIn(text)
  for (const name of names) {
    const { expanded, alsoNamed } = expandShortName(kinds, name)
    const kind = ofResource(kinds, expanded)
    if (kind !== undefined) return { kind, alsoNamed }
  }
  for (const name of names) {
    const kind = ofKind(kinds, name)
    if (kind !== undefined) return { kind, alsoNamed: [] }
  }
  return undefined
}

/** `a.b.c` is resource `a` of version `b` in group `c`, or resource `a` in group `b.c`. */
function namesIn(text: string): ResourceName[] {
  const [resource = '', ...rest] = text.split('.')
  const [version = '', ...group] = rest
  const plain = { resource, group: rest.join('.'), version: '' }
  return rest.length > 1 ? [{ resource, version, group: group.join('.') }, plain] : [plain]
}

interface Expansion {
  readonly expanded: ResourceName
  readonly alsoNamed: readonly string[]
}

function expandShortName(kinds: readonly ServedKind[], name: ResourceName): Expansion {
  const { resource, group } = name
  const inGroup = kinds.filter((kind) => group === '' || kind.group === group)
  const isFullName = inGroup.some(({ plural, singular }) => plural === resource || singular === resource)
  if (isFullName) return { expanded: name, alsoNamed: [] }
  const isShort = ({ shortNames }: ServedKind): boolean => shortNames?.includes(resource) ?? false
  const [first, ...others] = inGroup.filter(isShort)
  if (first !== undefined) {
    const alsoNamed = new Set(others.map(groupResourceOf))
    alsoNamed.delete(groupResourceOf(first))
    return { expanded: { resource: first.plural, group: first.group, version: '' }, alsoNamed: [...alsoNamed] }
  }
  const inPrefix = group === '' ? undefined : kinds.find((kind) => kind.group.startsWith(group) && isShort(kind))
  if (inPrefix === undefined) return { expanded: name, alsoNamed: [] }
  return { expanded: { ...name, resource: inPrefix.plural, group: inPrefix.group }, alsoNamed: [] }
}

function groupResourceOf({ plural, group }: ServedKind): string {
  return group === '' ? plural : `${plural}.${group}`
}

function ofResource(kinds: readonly ServedKind[], { resource, group, version }: ResourceName): ServedKind | undefined {
  const name = resource.toLowerCase()
  const named = kinds.filter(({ plural, singular, kind }) => {
    return plural === name || (singular === '' ? kind.toLowerCase() : singular) === name
  })
  const inVersion = version === '' ? named : named.filter((kind) => kind.version === version)
  if (group === '') return preferred(inVersion)
  const inGroup = preferred(inVersion.filter((kind) => kind.group === group))
  if (inGroup !== undefined || version !== '') return inGroup
  return preferred(inVersion.filter((kind) => kind.group.startsWith(group)))
}

/** A kind as written or in lower case, in exactly this group. */
function ofKind(kinds: readonly ServedKind[], { resource, group, version }: ResourceName): ServedKind | undefined {
  const fits = (one: ServedKind): boolean =>
    one.group === group &&
    (one.kind === resource || one.kind.toLowerCase() === resource) &&
    (version === '' || one.version === version)
  return preferred(kinds.filter(fits))
}

/** In the first group of the list: the preferred version, or else the first. */
export function preferred(kinds: readonly ServedKind[]): ServedKind | undefined {
  const [first] = kinds
  return kinds.find(({ group, isPreferred }) => isPreferred && group === first?.group) ?? first
}
