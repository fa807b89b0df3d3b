/** Explains why an object that is being deleted is still there. */
import { type Namespace, Namespaces, type Pod, Pods } from '#apis/core/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import { referenceTo } from '../citation.ts'
import { type Explainer, isOf, type Target } from '../explainer.ts'
import { type Finding, nameOf, notKnown, type Step } from '../explanation.ts'
import type { Reader } from '../reader.ts'

const NAMESPACE_CONDITIONS = [
  'NamespaceDeletionDiscoveryFailure',
  'NamespaceDeletionGroupVersionParsingFailure',
  'NamespaceDeletionContentFailure',
  'NamespaceContentRemaining',
  'NamespaceFinalizersRemaining',
]

export const termination: Explainer = {
  name: 'termination',
  applies: ({ object }) => isBeingDeleted(object),
  explain: (target, reader) => Promise.resolve(whyThere(target, reader)),
}

function whyThere(target: Target, reader: Reader): Finding {
  const { kind, object } = target
  const { deletionTimestamp = '', finalizers = [] } = object.metadata
  const named = `${kind.kind} ${nameOf(object)}`
  const step = (did: string, ...fieldPaths: readonly string[]): Step => ({
    at: deletionTimestamp,
    revision: object.metadata.resourceVersion ?? '',
    actor: 'kube-apiserver',
    did,
    object: referenceTo(target),
    because: [],
    evidence: reader.cite(kind, object, 'metadata.deletionTimestamp', ...fieldPaths),
    certainty: 'reported',
  })
  if (isOf(target, Namespaces)) return whyNamespace(object as Namespace, named, step)
  if (finalizers.length > 0) {
    const text = finalizers.join(', ')
    return {
      verdict: `${named} is being deleted, and stays because it has the finalizer ${text}`,
      steps: [step(`keeps it until the finalizer ${text} is removed`, 'metadata.finalizers')],
      wouldHelp: [`the program that owns the finalizer ${text} removes it when its work is done: check that it runs`],
    }
  }
  if (!isOf(target, Pods)) return notKnown(`${named} is being deleted and has no finalizer`)
  const { deletionGracePeriodSeconds = 0 } = (object as Pod).metadata
  if (epochMsOf(deletionTimestamp) > reader.nowMs) {
    return {
      verdict: `${named} is being deleted, and its containers have ${deletionGracePeriodSeconds} s until ${deletionTimestamp} to end`,
      steps: [step(`gave it ${deletionGracePeriodSeconds} s to end`, 'metadata.deletionGracePeriodSeconds')],
      wouldHelp: [],
    }
  }
  const { nodeName = '' } = (object as Pod).spec
  return notKnown(`the time for ${named} to end has passed, and the kubelet of ${nodeName} has not removed it`, [
    step('set the time at which it ends', 'metadata.deletionGracePeriodSeconds'),
  ])
}

function whyNamespace(
  { status }: Namespace,
  named: string,
  step: (did: string, ...fieldPaths: readonly string[]) => Step,
): Finding {
  const found = (status.conditions ?? []).filter(
    ({ type, status: state }) => NAMESPACE_CONDITIONS.includes(type) && state === 'True',
  )
  if (found.length === 0) {
    return notKnown(`${named} is being deleted, and its controller has reported nothing that remains`, [
      step('marked it for deletion'),
    ])
  }
  const messages = found.map(({ message = '' }) => message).filter((text) => text !== '')
  return {
    verdict: `${named} is being deleted, and stays because ${messages.join('; ')}`,
    steps: found.map(({ type, message = '' }) => ({
      ...step(`reported ${type}: ${message}`, `status.conditions[${type}].message`),
      actor: 'namespace-controller',
    })),
    wouldHelp: [],
  }
}
