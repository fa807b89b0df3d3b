/** What the two webhook configurations have in common, which is nearly everything. */
import type { MutatingWebhook, ValidatingWebhook } from '#apis/admissionregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { ResourceSpec } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { child, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1035Label } from '#meta/validation/names.ts'
import { complaining, validateFullyQualifiedName } from '#meta/validation/rules.ts'

import { DEFAULT_WEBHOOK_PORT, validateWebhookClient } from '../webhook-client.ts'
import {
  defaultRule,
  failurePolicies,
  matchPolicies,
  oneOfSet,
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

/** What an update may keep because the old object had it already. */
interface Tolerance {
  readonly sideEffects: boolean
  readonly reviewVersions: boolean
  readonly repeatedNames: boolean
  readonly invalidValues: boolean
  /** Conditions are not looked at: they are as they were. */
  readonly sameConditions: boolean
}

const strict: Tolerance = {
  sideEffects: false,
  reviewVersions: false,
  repeatedNames: false,
  invalidValues: false,
  sameConditions: false,
}

/** Everything but the kind. `mutating` webhooks may be called again after others have changed the object. */
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
  const bad = (selector: Webhook['objectSelector']): boolean => validateLabelSelector('', selector).length > 0
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
  const seen = new Set<string>()
  return webhooks.flatMap((webhook, at) => {
    const path = index('webhooks', at)
    const { name, admissionReviewVersions: versions } = webhook
    const repeated = !tolerance.repeatedNames && name !== '' && seen.has(name)
    seen.add(name)
    return [
      ...validateWebhook(path, webhook, tolerance),
      ...validateReviewVersions(child(path, 'admissionReviewVersions'), versions ?? [], tolerance.reviewVersions),
      ...(repeated ? [duplicate(child(path, 'name'), name)] : []),
    ]
  })
}

function validateWebhook(path: string, webhook: Webhook, tolerance: Tolerance): FieldError[] {
  const { timeoutSeconds: timeout = DEFAULT_TIMEOUT_SECONDS } = webhook
  const at = (name: string): string => child(path, name)
  return [
    ...validateFullyQualifiedName(at('name'), webhook.name),
    ...(webhook.rules ?? []).flatMap((rule, place) => validateRuleWithOperations(index(at('rules'), place), rule)),
    ...oneOfSet(at('failurePolicy'), webhook.failurePolicy, failurePolicies),
    ...oneOfSet(at('matchPolicy'), webhook.matchPolicy, matchPolicies),
    ...validateSideEffects(at('sideEffects'), webhook.sideEffects, tolerance),
    ...(timeout < 1 || timeout > MAX_TIMEOUT_SECONDS
      ? [invalid(at('timeoutSeconds'), timeout, 'the timeout value must be between 1 and 30 seconds')]
      : []),
    ...validateLabelSelector(at('namespaceSelector'), webhook.namespaceSelector, tolerance),
    ...validateLabelSelector(at('objectSelector'), webhook.objectSelector, tolerance),
    ...oneOfSet(at('reinvocationPolicy'), webhook.reinvocationPolicy, reinvocationPolicies),
    ...validateWebhookClient(at('clientConfig'), webhook.clientConfig),
    ...(tolerance.sameConditions ? [] : validateMatchConditions(at('matchConditions'), webhook.matchConditions)),
  ]
}

/** A pointer that is always written: absent may read as null. */
function validateSideEffects(field: string, value: string | null | undefined, tolerance: Tolerance): FieldError[] {
  const allowed = tolerance.sideEffects ? allSideEffects : harmless
  if (value !== null && value !== undefined) return oneOfSet(field, value, allowed)
  return [required(field, `must specify one of ${[...allowed].sort(compareText).join(', ')}`)]
}

function validateReviewVersions(field: string, versions: readonly string[], tolerated: boolean): FieldError[] {
  const known = reviewVersions.join(', ')
  if (versions.length === 0) return [required(field, `must specify one of ${known}`)]
  const isRepeated = createRepetition()
  const errors = versions.flatMap((version, at) =>
    isRepeated(version)
      ? [invalid(index(field, at), version, 'duplicate version')]
      : complaining(index(field, at), version, dns1035Label(version)),
  )
  if (tolerated || versions.some((version) => reviewVersions.includes(version))) return errors
  return [...errors, invalid(field, versions, `must include at least one of ${known}`)]
}
