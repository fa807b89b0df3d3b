/** Whether a webhook is asked about a request, and what all webhooks are asked with. */
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'

import { Asking as AskingAuthorizer } from '../matching/asking.ts'
import type { ConditionMeter } from '../matching/condition-meter.ts'
import { evaluateConditions } from '../matching/conditions.ts'
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
  /** What conditions may ask about who made the request. */
  readonly authorize: Authorizer['authorize']
  /** Whether those asked may change the object. */
  readonly isMutating: boolean
}

/** The request as the webhook wants to see it. A conversion that fails is named by each layer of upstream's that it passes. */
export async function showForm(tools: WebhookTools, attributes: Attributes, kind: GroupVersionKind): Promise<Shown> {
  try {
    return await tools.forms.show(attributes, kind)
  } catch (cause) {
    const named = internalError(cause as Error)
    throw tools.isMutating ? internalError(named) : named
  }
}

/** The form in which the webhook wants to see the request; undefined when it does not. Throws StatusError. */
export async function formWanted(tools: WebhookTools, hook: Hook, attributes: Attributes): Promise<Form | undefined> {
  const matching = matchRequest(hook.criteria, attributes, tools.forms)
  const form = matching === undefined ? undefined : await matching
  if (form === undefined || hook.conditions().length === 0) return form
  return (await isMet(tools, hook, form, attributes)) ? form : undefined
}

/** Conditions see the object as the webhook would, the resource as the request names it, and no namespace. */
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
