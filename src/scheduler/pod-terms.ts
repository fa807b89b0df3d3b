/** Affinity of pods to pods, made ready: whom a term means, and near in which sense. */
import type { Pod, PodAffinityTerm, WeightedPodAffinityTerm } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, type Labels, matchesLabels, nothing, type Selector, selectorText } from '#meta/labels.ts'

export interface PodTerm {
  /** The same for all terms that mean the same. */
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
  /** The weights are those of the spec: what counts against a node. */
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

/** With neither names nor a selector of namespaces, the pod's own is meant. */
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

export interface Labelled {
  readonly namespace: string
  readonly labels: Labels
}

/** `labelsOfNamespace`: of the pod's own. */
export function isMeant(
  term: PodTerm,
  { namespace, labels }: Labelled,
  labelsOfNamespace: (name: string) => Labels,
): boolean {
  return meansNamespace(term, namespace, labelsOfNamespace) && matchesLabels(term.selector, labels)
}

function meansNamespace(
  { namespaces, namespaceSelector }: PodTerm,
  name: string,
  labelsOfNamespace: (name: string) => Labels,
): boolean {
  if (namespaces.has(name) || isEverything(namespaceSelector)) return true
  return namespaceSelector.nothing !== true && matchesLabels(namespaceSelector, labelsOfNamespace(name))
}
