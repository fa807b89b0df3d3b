/** Matching: whether a webhook or a policy is about a request, and in which form it wants to see it. */
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { GroupKind } from '#meta/kind.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { isEverything, type Labels, matchesLabels, type Selector } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { internalError, notFoundError } from '#meta/status-errors.ts'

import type { Form, Forms } from './forms.ts'
import { matchesRule, type ResourceRule, type RuleSubject } from './rule.ts'

/** As configurations have it, with their defaults. Absent selectors select nothing. */
export interface MatchTerms {
  /** Absent: everything matches. Empty: nothing. */
  readonly rules?: readonly ResourceRule[] | undefined
  readonly excludeRules?: readonly ResourceRule[]
  /** `Equivalent`: also under another group or version; default: as the request names it. */
  readonly matchPolicy?: string | undefined
  readonly namespaceSelector: LabelSelector | undefined
  readonly objectSelector: LabelSelector | undefined
}

export interface Criteria extends Omit<MatchTerms, 'namespaceSelector' | 'objectSelector'> {
  /** Throws for one that breaks the rules, which old configurations may. */
  readonly namespaces: () => Selector
  readonly objects: () => Selector
}

export function createCriteria({ namespaceSelector, objectSelector, ...terms }: MatchTerms): Criteria {
  return {
    ...terms,
    namespaces: once(() => asSelector(namespaceSelector)),
    objects: once(() => asSelector(objectSelector)),
  }
}

/** Made when it is first asked for, and kept. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/**
 * The form that is wanted. Undefined at once, without a promise, when no rule is about the request, as is the case for
 * most. Rejects with StatusError when that cannot be told.
 */
export function matchRequest(
  criteria: Criteria,
  attributes: Attributes,
  forms: Forms,
): Promise<Form | undefined> | undefined {
  const { rules, excludeRules = [], matchPolicy } = criteria
  const form = rules === undefined ? requestedForm(attributes) : formFor(rules, matchPolicy, attributes, forms)
  if (form === undefined || formFor(excludeRules, matchPolicy, attributes, forms) !== undefined) return undefined
  return isSelected(criteria, attributes).then((selected) => (selected ? form : undefined))
}

/** The request as it came. */
export function requestedForm({ addressed, objectKind: { group, version, kind } }: Attributes): Form {
  return { resource: addressed, kind: { group, version, kind } }
}

function formFor(
  rules: readonly ResourceRule[],
  matchPolicy: string | undefined,
  attributes: Attributes,
  forms: Forms,
): Form | undefined {
  const own = requestedForm(attributes)
  const subject = (form: Form): RuleSubject => ({
    ...form.resource,
    operation: attributes.operation,
    subresource: attributes.subresource,
    namespace: namespaceOf(attributes),
    name: attributes.name,
  })
  const asked = subject(own)
  if (rules.some((rule) => matchesRule(rule, asked))) return own
  if (matchPolicy !== 'Equivalent' || rules.length === 0) return undefined
  const others = forms.equivalents(attributes)
  if (others.length === 0) return undefined
  for (const rule of rules) {
    const found = others.find((form) => matchesRule(rule, subject(form)))
    if (found !== undefined) return found
  }
  return undefined
}

const isNamespace = ({ kind }: Attributes): boolean =>
  kind.group === Namespaces.group && kind.plural === Namespaces.plural

/** The namespace of a request; that of a Namespace is itself. */
export function namespaceOf(attributes: Attributes): string {
  const { namespace, name, object, oldObject } = attributes
  return isNamespace(attributes) ? name || ((object ?? oldObject)?.metadata.name ?? '') : namespace
}

async function isSelected({ namespaces, objects }: Criteria, attributes: Attributes): Promise<boolean> {
  const selector = parsed(objects)
  const { object, oldObject } = attributes
  if (!isEverything(selector) && !selects(selector, object) && !selects(selector, oldObject)) return false
  return inSelectedNamespace(namespaces, attributes)
}

function selects(selector: Selector, object: KubeObject | undefined): boolean {
  return object?.metadata !== undefined && matchesLabels(selector, object.metadata.labels)
}

/** Objects of the cluster are never left out by their namespace; a Namespace goes by its own labels, those it will have. */
async function inSelectedNamespace(namespaces: () => Selector, attributes: Attributes): Promise<boolean> {
  const name = namespaceOf(attributes)
  if (name === '' && !isNamespace(attributes)) return true
  const selector = parsed(namespaces)
  return isEverything(selector) || matchesLabels(selector, await namespaceLabels(name, attributes))
}

async function namespaceLabels(name: string, attributes: Attributes): Promise<Labels> {
  const { object, subresource, operation, objects } = attributes
  const isWritten = isNamespace(attributes) && subresource === '' && operation !== 'DELETE'
  if (isWritten && object !== undefined) return object.metadata.labels
  const namespace = await objects.get(Namespaces, '', name)
  if (namespace === undefined) throw notFoundError({ group: '', resource: 'namespaces' }, name)
  return namespace.metadata.labels
}

function parsed(selector: () => Selector): Selector {
  try {
    return selector()
  } catch (cause) {
    throw internalError(cause as Error)
  }
}

/** What webhooks and policies are made of, which no webhook is asked about: one that fails could never be taken away. */
const CONFIGURATIONS: ReadonlySet<string> = new Set([
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
])

export function isAdmissionConfiguration({ group, kind }: GroupKind): boolean {
  return group === 'admissionregistration.k8s.io' && CONFIGURATIONS.has(kind)
}
