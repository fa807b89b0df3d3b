/** Decides whether a webhook or policy applies to a request, and in which version it receives the object. */
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { GroupKind } from '#meta/kind.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { isEverything, type Labels, matchesLabels, type Selector } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { internalError, notFoundError } from '#meta/status-errors.ts'

import type { Form, Forms } from './forms.ts'
import { matchesRule, type ResourceRule, type RuleSubject } from './rule.ts'

/** The match resources of a configuration, with defaults. An absent selector selects nothing. */
export interface MatchTerms {
  /** Absent: everything matches. Empty: nothing. */
  readonly rules?: readonly ResourceRule[] | undefined
  readonly excludeRules?: readonly ResourceRule[]
  /** `Equivalent`: also under another group or version; default: exactly as requested. */
  readonly matchPolicy?: string | undefined
  readonly namespaceSelector: LabelSelector | undefined
  readonly objectSelector: LabelSelector | undefined
}

export interface Criteria extends Omit<MatchTerms, 'namespaceSelector' | 'objectSelector'> {
  /** Throws for an invalid selector, which old configurations may contain. */
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

/** Made on demand, and cached. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/**
 * The matching form. Undefined at once, without a promise, if no rule matches, as for most requests. Rejects with
 * StatusError if it cannot be determined.
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

/** The request's own form. */
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
  const requestSubject = subject(own)
  if (rules.some((rule) => matchesRule(rule, requestSubject))) return own
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

/** A namespace selector never excludes cluster-scoped objects; a Namespace is selected by its own new labels. */
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

/** Webhook and policy configurations, which no webhook intercepts: a failing one could never be removed. */
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
