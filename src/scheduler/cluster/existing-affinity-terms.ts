/**
 * Indexes the affinity terms of placed pods: each distinct term once, with the nodes of the pods that have it. A new
 * pod is compared with the terms, not with the pods.
 */
import type { Labels } from '#meta/labels.ts'

import { bump, type NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'
import type { PodTerm } from './pod-terms.ts'

/** Required or preferred, affinity or anti-affinity. */
export type TermKind = 'affinity' | 'antiAffinity' | 'preferred' | 'avoided'

export class TermWeights {
  readonly term: PodTerm
  /** The sum of the weights by topology value; required terms count one each. */
  readonly byValue: Map<string, number> = new Map()
  /** By node, for changes of its labels. */
  readonly #onNode = new Map<string, number>()

  constructor(term: PodTerm) {
    this.term = term
  }

  get isUnused(): boolean {
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

export class ExistingAffinityTerms {
  readonly #byKind: Readonly<Record<TermKind, Map<string, TermWeights>>> = {
    affinity: new Map(),
    antiAffinity: new Map(),
    preferred: new Map(),
    avoided: new Map(),
  }

  of(sort: TermKind): Iterable<TermWeights> {
    return this.#byKind[sort].values()
  }

  placed({ terms }: PodInfo, node: NodeInfo, by: 1 | -1): void {
    for (const term of terms.affinity) this.#count('affinity', term, node, by)
    for (const term of terms.antiAffinity) this.#count('antiAffinity', term, node, by)
    for (const { term, weight } of terms.preferred) this.#count('preferred', term, node, by * weight)
    for (const { term, weight } of terms.avoided) this.#count('avoided', term, node, by * weight)
  }

  moved(node: string, from: Labels, to: Labels): void {
    for (const byKind of Object.values(this.#byKind))
      for (const weights of byKind.values()) weights.moved(node, from, to)
  }

  #count(sort: TermKind, term: PodTerm, node: NodeInfo, weight: number): void {
    const byKind = this.#byKind[sort]
    let weights = byKind.get(term.id)
    if (weights === undefined) byKind.set(term.id, (weights = new TermWeights(term)))
    weights.count(node, weight)
    if (weights.isUnused) byKind.delete(term.id)
  }
}
