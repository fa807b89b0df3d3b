/**
 * Explanation: why an object is in its state, of the kind Explanation in hyperkube.io/v1. Every step cites the fields that
 * it follows from. NotKnown is an answer too: a wrong explanation is worse than none.
 */
import type { KubeObject } from '#meta/object.ts'

/**
 * `reported`: a component wrote it. `recomputed`: the decision was repeated on the objects. `inferred`: it follows from the
 * objects, but no component reported it.
 */
export type Certainty = 'reported' | 'recomputed' | 'inferred'

/** A field of an object at a resourceVersion. */
export interface Evidence {
  /** `pods/default/web-1@812`. */
  readonly object: string
  /** `status.conditions[PodScheduled].message`. */
  readonly fieldPath: string
  /** Absent: the object does not have the field. */
  readonly value?: unknown
}

export interface Step {
  /** RFC 3339; absent: no time is known. */
  readonly at?: string
  readonly revision?: string
  /** A user or a component. */
  readonly actor: string
  /** A sentence without its subject. */
  readonly did: string
  /** `pods/default/web-1`. */
  readonly object: string
  /** `pods/default/web-1@812`. */
  readonly because: readonly string[]
  readonly evidence: readonly Evidence[]
  readonly certainty: Certainty
}

/** The result of an explainer. */
export interface Finding {
  /** One plain sentence. It begins with `NotKnown: ` if the reason is not known. */
  readonly verdict: string
  readonly steps: readonly Step[]
  /** Sentences. */
  readonly wouldHelp: readonly string[]
}

export interface ObjectName {
  readonly resource: string
  readonly namespace?: string
  readonly name: string
  readonly uid?: string
}

export interface Explanation extends Finding {
  readonly kind: 'Explanation'
  readonly apiVersion: 'hyperkube.io/v1'
  readonly about: ObjectName
  readonly question: string
  /** The time of the state that it explains. */
  readonly at: string
}

const NOT_KNOWN = 'NotKnown: '

/** `why`: what is missing for an answer. */
export function notKnown(why: string, steps: readonly Step[] = []): Finding {
  return { verdict: `${NOT_KNOWN}${why}`, steps, wouldHelp: [] }
}

export function isNotKnown({ verdict }: Pick<Finding, 'verdict'>): boolean {
  return verdict.startsWith(NOT_KNOWN)
}

/** The step for an object whose content the user may not read. */
export function hiddenStep(did = 'is an object that you may not see'): Step {
  return { actor: '', did, object: '', because: [], evidence: [], certainty: 'inferred' }
}

/** `default/web-1`, or `node-1`. */
export function nameOf({ metadata: { namespace = '', name = '' } }: KubeObject): string {
  return namespace === '' ? name : `${namespace}/${name}`
}
