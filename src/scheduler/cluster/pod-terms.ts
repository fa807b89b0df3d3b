/** Prepares pod affinity terms for fast matching: the pods that a term selects, and its topology key. */
import type { Pod, PodAffinityTerm, WeightedPodAffinityTerm } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, type Labels, matchesLabels, nothing, type Selector, selectorText } from '#meta/labels.ts'

export interface PodTerm {
  /** Equal for equal terms. */
  readonly id: string
  readonly topologyKey: string
  readonly namespaces: ReadonlySet<string>
  readonly namespaceSelector: Selector
  readonly selector: Selector
}

export interface WeightedTerm {
  readonly term: PodTerm
  readonly weight: number
}

export interface PodTerms {
  readonly affinity: readonly PodTerm[]
  readonly antiAffinity: readonly PodTerm[]
  readonly preferred: readonly WeightedTerm[]
  /** The weights of the spec; they count against a node. */
  readonly avoided: readonly WeightedTerm[]
}

const NONE: PodTerms = { affinity: [], antiAffinity: [], preferred: [], avoided: [] }

export function podTermsOf({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): PodTerms {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  if (podAffinity === undefined && podAntiAffinity === undefined) return NONE
  const own = metadata.namespace ?? ''
  const terms = (list: readonly PodAffinityTerm[] = []): PodTerm[] => list.map((term) => termOf(own, term))
  const weighted = (list: readonly WeightedPodAffinityTerm[] = []): WeightedTerm[] =>
    list.map(({ weight, podAffinityTerm }) => ({ term: termOf(own, podAffinityTerm), weight }))
  return {
    affinity: terms(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: terms(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferred: weighted(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    avoided: weighted(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
  }
}

/** Without namespaces and namespace selector, the pod's namespace applies. */
function termOf(
  own: string,
  { namespaces = [], namespaceSelector, labelSelector, topologyKey }: PodAffinityTerm,
): PodTerm {
  const names = namespaces.length === 0 && namespaceSelector === undefined ? [own] : namespaces
  const selector = asSelector(labelSelector)
  const namespacesBy = namespaceSelector === undefined ? nothing : asSelector(namespaceSelector)
  const id = [topologyKey, [...names].sort().join(','), idOf(namespacesBy), idOf(selector)].join('\n')
  return { id, topologyKey, namespaces: new Set(names), namespaceSelector: namespacesBy, selector }
}

function idOf(selector: Selector): string {
  return selector.nothing === true ? '!' : selectorText(selector)
}

export interface LabelledObject {
  readonly namespace: string
  readonly labels: Labels
}

/** `labelsOfNamespace` belong to the pod's namespace. */
export function matchesTerm(
  term: PodTerm,
  { namespace, labels }: LabelledObject,
  labelsOfNamespace: (name: string) => Labels,
): boolean {
  return matchesNamespace(term, namespace, labelsOfNamespace) && matchesLabels(term.selector, labels)
}

function matchesNamespace(
  { namespaces, namespaceSelector }: PodTerm,
  name: string,
  labelsOfNamespace: (name: string) => Labels,
): boolean {
  if (namespaces.has(name) || isEverything(namespaceSelector)) return true
  return namespaceSelector.nothing !== true && matchesLabels(namespaceSelector, labelsOfNamespace(name))
}
