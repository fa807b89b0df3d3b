/**
 * What pods that have a node say about the company they want: every term that any of them has, once, with the nodes of
 * those who have it. A new pod is compared with the terms, not with the pods.
 */
import type { Labels } from '#meta/labels.ts'

import { bump, type NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'
import type { PodTerm } from './pod-terms.ts'

/** How a term is meant: as a rule or as a wish, for or against. */
export type WishSort = 'affinity' | 'antiAffinity' | 'preferred' | 'avoided'

export class Wish {
  readonly term: PodTerm
  /** The sum of the weights, by value of the label that the term names; one each for rules. */
  readonly byValue: Map<string, number> = new Map()
  /** By node: for when its labels change. */
  readonly #onNode = new Map<string, number>()

  constructor(term: PodTerm) {
    this.term = term
  }

  get isNobodys(): boolean {
    return this.#onNode.size === 0
  }

  count(node: NodeInfo, weight: number): void {
    bump(this.#onNode, node.name, weight)
    this.#spread(node.labels, weight)
  }

  moved(node: string, from: Labels, to: Labels): void {
    const weight = this.#onNode.get(node)
    if (weight === undefined) return
    this.#spread(from, -weight)
    this.#spread(to, weight)
  }

  #spread(labels: Labels, weight: number): void {
    const value = labels?.[this.term.topologyKey]
    if (value !== undefined) bump(this.byValue, value, weight)
  }
}

export class PodWishes {
  readonly #wishes: Readonly<Record<WishSort, Map<string, Wish>>> = {
    affinity: new Map(),
    antiAffinity: new Map(),
    preferred: new Map(),
    avoided: new Map(),
  }

  of(sort: WishSort): Iterable<Wish> {
    return this.#wishes[sort].values()
  }

  placed({ terms }: PodInfo, node: NodeInfo, by: 1 | -1): void {
    for (const term of terms.affinity) this.#count('affinity', term, node, by)
    for (const term of terms.antiAffinity) this.#count('antiAffinity', term, node, by)
    for (const { term, weight } of terms.preferred) this.#count('preferred', term, node, by * weight)
    for (const { term, weight } of terms.avoided) this.#count('avoided', term, node, by * weight)
  }

  moved(node: string, from: Labels, to: Labels): void {
    for (const wishes of Object.values(this.#wishes)) for (const wish of wishes.values()) wish.moved(node, from, to)
  }

  #count(sort: WishSort, term: PodTerm, node: NodeInfo, weight: number): void {
    const wishes = this.#wishes[sort]
    let wish = wishes.get(term.id)
    if (wish === undefined) wishes.set(term.id, (wish = new Wish(term)))
    wish.count(node, weight)
    if (wish.isNobodys) wishes.delete(term.id)
  }
}
