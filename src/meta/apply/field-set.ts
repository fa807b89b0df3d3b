/**
 * FieldSet: an immutable set of field paths, as a tree. A node of the tree can be a member, have members below it, or
 * both.
 */
import { fieldElement, type PathElement, sortElements } from './path-element.ts'

export interface FieldSet {
  /** Elements that end a path of the set. */
  readonly members: ReadonlySet<PathElement>
  /** Elements with paths below them. No child is empty. */
  readonly children: ReadonlyMap<PathElement, FieldSet>
}

export const EMPTY_SET: FieldSet = { members: new Set(), children: new Map() }

export function isEmptySet(set: FieldSet): boolean {
  return set.members.size === 0 && set.children.size === 0
}

export function hasPath(set: FieldSet, path: readonly PathElement[]): boolean {
  let at: FieldSet | undefined = set
  for (const element of path.slice(0, -1)) at = at?.children.get(element)
  return at?.members.has(path.at(-1) ?? '') ?? false
}

/** A set under construction. A child joins its parent when it gets its first member, because most stay empty. */
export class FieldSetBuilder {
  readonly #parent: FieldSetBuilder | undefined
  readonly #element: PathElement
  #members: Set<PathElement> | undefined
  #children: Map<PathElement, FieldSetBuilder> | undefined

  constructor(parent?: FieldSetBuilder, element: PathElement = '') {
    this.#parent = parent
    this.#element = element
  }

  add(element: PathElement): void {
    this.#members ??= new Set()
    this.#members.add(element)
    this.#join()
  }

  /** The builder below `element`. Only the first of several to get members counts: use one at a time. */
  at(element: PathElement): FieldSetBuilder {
    return this.#children?.get(element) ?? new FieldSetBuilder(this, element)
  }

  #join(): void {
    const parent = this.#parent
    if (parent === undefined || parent.#children?.has(this.#element)) return
    parent.#children ??= new Map()
    parent.#children.set(this.#element, this)
    parent.#join()
  }

  build(): FieldSet {
    if (this.#members === undefined && this.#children === undefined) return EMPTY_SET
    const children = new Map<PathElement, FieldSet>()
    for (const [element, builder] of this.#children ?? []) children.set(element, builder.build())
    return { members: this.#members ?? EMPTY_SET.members, children }
  }
}

/** The set of the given paths. */
export function setOf(...paths: readonly (readonly PathElement[])[]): FieldSet {
  const root = new FieldSetBuilder()
  for (const path of paths) {
    let builder = root
    for (const element of path.slice(0, -1)) builder = builder.at(element)
    builder.add(path.at(-1) ?? '')
  }
  return root.build()
}

/** Paths of struct fields without their prefixes: `fieldPaths('metadata.name', 'kind')`. */
export function fieldPaths(...paths: readonly string[]): FieldSet {
  return setOf(...paths.map((path) => path.split('.').map(fieldElement)))
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return b
  if (isEmptySet(b)) return a
  const children = new Map(a.children)
  for (const [element, child] of b.children) {
    const other = children.get(element)
    children.set(element, other === undefined ? child : union(other, child))
  }
  return { members: a.members.union(b.members), children }
}

/** Merges pairwise, so that each member is copied once per round. */
export function unionOfAll(sets: readonly FieldSet[]): FieldSet {
  let joined = sets
  while (joined.length > 1) {
    const round = joined
    joined = round.flatMap((set, at) => (at % 2 === 0 ? [union(set, round[at + 1] ?? EMPTY_SET)] : []))
  }
  return joined[0] ?? EMPTY_SET
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, a.members.intersection(b.members), (element, child) => {
    const other = b.children.get(element)
    return other === undefined ? EMPTY_SET : intersection(child, other)
  })
}

/** Paths of `a` that are not in `b`. Paths below a path of `b` stay. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a
  return combine(a, a.members.difference(b.members), (element, child) => {
    const other = b.children.get(element)
    return other === undefined ? child : difference(child, other)
  })
}

/** Paths of `a` that are neither in `b` nor below a path of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a
  return combine(a, a.members.difference(b.members), (element, child) => {
    if (b.members.has(element)) return EMPTY_SET
    const other = b.children.get(element)
    return other === undefined ? child : recursiveDifference(child, other)
  })
}

/** `set` with these members, and each child mapped by `each`. */
export function combine(
  set: FieldSet,
  members: ReadonlySet<PathElement>,
  each: (element: PathElement, child: FieldSet) => FieldSet,
): FieldSet {
  const kept = new Map<PathElement, FieldSet>()
  let same = members.size === set.members.size
  for (const [element, child] of set.children) {
    const next = each(element, child)
    if (next !== child) same = false
    if (!isEmptySet(next)) kept.set(element, next)
  }
  return same ? set : { members, children: kept }
}

export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  if (a.members.size !== b.members.size || a.children.size !== b.children.size) return false
  if (!a.members.isSubsetOf(b.members)) return false
  for (const [element, child] of a.children) {
    const other = b.children.get(element)
    if (other === undefined || !equalSets(child, other)) return false
  }
  return true
}

/** Every path in upstream's order: at each level first those that end there. */
export function* pathsOf(
  set: FieldSet,
  prefix: readonly PathElement[] = [],
): Generator<PathElement[], void, undefined> {
  for (const element of sortElements([...set.members])) yield [...prefix, element]
  for (const element of sortElements([...set.children.keys()])) {
    yield* pathsOf(set.children.get(element) ?? EMPTY_SET, [...prefix, element])
  }
}
