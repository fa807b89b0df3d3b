/** Decides whether a webhook applies to a request, and converts the object to the version of the webhook's rules. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'

import type { ConditionMeter } from '../matching/condition-meter.ts'
import { evaluateConditions } from '../matching/conditions.ts'
import { ExpressionAuthorizer as AskingAuthorizer } from '../matching/expression-authorizer.ts'
import type { Form, Forms, Shown } from '../matching/forms.ts'
import { matchRequest } from '../matching/matcher.ts'
import { requestValue } from '../matching/request.ts'
import type { Hook } from './hooks.ts'
import type { WebhookMeter } from './meter.ts'
import type { Asking } from './verdict.ts'

export interface WebhookTools extends Asking {
  readonly forms: Forms
  readonly meter: WebhookMeter
  readonly conditions: ConditionMeter
  /** The authorizer for match conditions. */
  readonly authorize: Authorizer['authorize']
  /** True for mutating webhooks. */
  readonly isMutating: boolean
}

/** The request in the webhook's form. A conversion error has the prefixes of upstream's layers. */
export async function showForm(tools: WebhookTools, attributes: Attributes, kind: GroupVersionKind): Promise<Shown> {
  try {
    return await tools.forms.show(attributes, kind)
  } catch (cause) {
    const named = internalError(cause as Error)
    throw tools.isMutating ? internalError(named) : named
  }
}

/** The form in which the webhook sees the request; undefined if it does not match. Throws StatusError. */
export async function formWanted(tools: WebhookTools, hook: Hook, attributes: Attributes): Promise<Form | undefined> {
  const matching = matchRequest(hook.criteria, attributes, tools.forms)
  const form = matching === undefined ? undefined : await matching
  if (form === undefined || hook.conditions().length === 0) return form
  return (await isMet(tools, hook, form, attributes)) ? form : undefined
}

/** Conditions see the webhook's form of the object, the requested resource, and no namespace. */
async function isMet(tools: WebhookTools, hook: Hook, { kind }: Form, attributes: Attributes): Promise<boolean> {
  const { name, failurePolicy } = hook.spec
  const { addressed, operation } = attributes
  const { object, oldObject } = await showForm(tools, attributes, kind)
  const request = requestValue(attributes, { kind, resource: addressed })
  const measured = tools.conditions.begin(name, operation)
  const asking = new AskingAuthorizer(tools.authorize, attributes)
  const outcome = await asking.run((values) =>
    evaluateConditions(hook.conditions(), { inputs: { object, oldObject, request }, asking: values, failurePolicy }),
  )
  measured(outcome)
  if (outcome.error !== undefined) throw forbiddenError(addressed, attributes.name, outcome.error)
  if (!outcome.matches) tools.meter.excluded(name, operation)
  return outcome.matches
}
