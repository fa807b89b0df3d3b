/** The parts that both kinds of webhook configurations share. */
import type { MutatingWebhook, ValidatingWebhook } from '#apis/admissionregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { ResourceSpec } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label } from '#meta/validation/names.ts'
import { oneOfSet, validateFullyQualifiedName } from '#meta/validation/rules.ts'

import { DEFAULT_WEBHOOK_PORT, validateWebhookClient } from '../webhook-client.ts'
import {
  defaultRule,
  failurePolicies,
  matchPolicies,
  reinvocationPolicies,
  validateMatchConditions,
  validateRuleWithOperations,
} from './match-rules.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

type Webhook = ValidatingWebhook & Pick<MutatingWebhook, 'reinvocationPolicy'>

interface Configuration extends KubeObject {
  webhooks?: Webhook[]
}

const DEFAULT_TIMEOUT_SECONDS = 10
const MAX_TIMEOUT_SECONDS = 30

/** Invalid values that an update may keep, because the old object has them. */
interface Tolerance {
  readonly sideEffects: boolean
  readonly reviewVersions: boolean
  readonly repeatedNames: boolean
  readonly invalidValues: boolean
  /** Unchanged match conditions are not validated again. */
  readonly sameConditions: boolean
}

const strict: Tolerance = {
  sideEffects: false,
  reviewVersions: false,
  repeatedNames: false,
  invalidValues: false,
  sameConditions: false,
}

/** Everything except the kind. `mutating` webhooks may be reinvoked after later changes. */
export function webhookRules<T extends Configuration>(mutating: boolean): Omit<ResourceSpec<T>, 'kind'> {
  return {
    metadataRules: { update: ['whole'], plainFinalizers: true },
    generation: 'spec',
    applyDefaults({ webhooks = [] }) {
      for (const webhook of webhooks) applyWebhookDefaults(webhook, mutating)
    },
    validate: (object, context) => [
      ...validateWebhooks(object.webhooks ?? [], strict),
      ...validateStaticName(object, context),
    ],
    validateUpdate: (next, old) => validateWebhooks(next.webhooks ?? [], toleranceOf(next, old)),
    warnings: staticNameWarnings,
    columns: [
      nameColumn,
      { name: 'Webhooks', type: 'integer', value: ({ webhooks = [] }) => webhooks.length },
      ageColumn,
    ],
    putNeedsVersion: true,
  }
}

function applyWebhookDefaults(webhook: Webhook, mutating: boolean): void {
  webhook.failurePolicy ??= 'Fail'
  webhook.matchPolicy ??= 'Equivalent'
  webhook.namespaceSelector ??= {}
  webhook.objectSelector ??= {}
  webhook.timeoutSeconds ??= DEFAULT_TIMEOUT_SECONDS
  if (mutating) webhook.reinvocationPolicy ??= 'Never'
  for (const rule of webhook.rules ?? []) defaultRule(rule)
  const { service } = webhook.clientConfig
  if (service !== undefined) service.port ??= DEFAULT_WEBHOOK_PORT
}

const harmless = ['None', 'NoneOnDryRun']
const allSideEffects = ['Unknown', 'None', 'Some', 'NoneOnDryRun']
const reviewVersions = ['v1', 'v1beta1']

function toleranceOf({ webhooks: next = [] }: Configuration, { webhooks: old = [] }: Configuration): Tolerance {
  const names = old.map(({ name }) => name)
  const bad = (selector: Webhook['objectSelector']): boolean =>
    validateLabelSelector(fieldPath(''), selector).length > 0
  return {
    sideEffects: old.some(({ sideEffects }) => !harmless.includes(sideEffects)),
    reviewVersions: old.some(({ admissionReviewVersions: versions }) => {
      const list = versions ?? []
      return list.length > 0 && !list.some((version) => reviewVersions.includes(version))
    }),
    repeatedNames: new Set(names).size < names.length,
    invalidValues: old.some(({ namespaceSelector, objectSelector }) => bad(namespaceSelector) || bad(objectSelector)),
    sameConditions:
      next.length === old.length &&
      next.every((one, at) => semanticEqual(one.matchConditions, old[at]?.matchConditions)),
  }
}

function validateWebhooks(webhooks: readonly Webhook[], tolerance: Tolerance): FieldError[] {
  const isRepeated = createRepetition()
  return fieldPath('webhooks').each(webhooks, (path, webhook) => {
    const { name, admissionReviewVersions: versions } = webhook
    const repeated = isRepeated(name) && !tolerance.repeatedNames && name !== ''
    return collectErrors(
      validateWebhook(path, webhook, tolerance),
      validateReviewVersions(path.child('admissionReviewVersions'), versions ?? [], tolerance.reviewVersions),
      repeated && path.child('name').duplicate(name),
    )
  })
}

function validateWebhook(path: FieldPath, webhook: Webhook, tolerance: Tolerance): FieldError[] {
  const { timeoutSeconds: timeout = DEFAULT_TIMEOUT_SECONDS } = webhook
  const at = (name: string): FieldPath => path.child(name)
  return collectErrors(
    validateFullyQualifiedName(at('name'), webhook.name),
    at('rules').each(webhook.rules, validateRuleWithOperations),
    oneOfSet(at('failurePolicy'), webhook.failurePolicy, failurePolicies),
    oneOfSet(at('matchPolicy'), webhook.matchPolicy, matchPolicies),
    validateSideEffects(at('sideEffects'), webhook.sideEffects, tolerance),
    (timeout < 1 || timeout > MAX_TIMEOUT_SECONDS) &&
      at('timeoutSeconds').invalid(timeout, 'the timeout value must be between 1 and 30 seconds'),
    validateLabelSelector(at('namespaceSelector'), webhook.namespaceSelector, tolerance),
    validateLabelSelector(at('objectSelector'), webhook.objectSelector, tolerance),
    oneOfSet(at('reinvocationPolicy'), webhook.reinvocationPolicy, reinvocationPolicies),
    validateWebhookClient(at('clientConfig'), webhook.clientConfig),
    !tolerance.sameConditions && validateMatchConditions(at('matchConditions'), webhook.matchConditions),
  )
}

/** A pointer that is always written: an absent value is null. */
function validateSideEffects(path: FieldPath, value: string | null | undefined, tolerance: Tolerance): FieldError[] {
  const allowed = tolerance.sideEffects ? allSideEffects : harmless
  if (value !== null && value !== undefined) return oneOfSet(path, value, allowed)
  return [path.required(`must specify one of ${[...allowed].sort(compareText).join(', ')}`)]
}

function validateReviewVersions(path: FieldPath, versions: readonly string[], tolerated: boolean): FieldError[] {
  const known = reviewVersions.join(', ')
  if (versions.length === 0) return [path.required(`must specify one of ${known}`)]
  const isRepeated = createRepetition()
  const errors = path.each(versions, (path, version) =>
    isRepeated(version) ? [path.invalid(version, 'duplicate version')] : path.check(version, dns1035Label),
  )
  if (tolerated || versions.some((version) => reviewVersions.includes(version))) return errors
  return [...errors, path.invalid(versions, `must include at least one of ${known}`)]
}
