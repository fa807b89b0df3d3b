/** Whether a webhook is asked about a request, and what all webhooks are asked with. */
import type { Attributes } from '#apiserver/registry/admission.ts'

import type { Form, Forms } from '../matching/forms.ts'
import { matchRequest } from '../matching/matcher.ts'
import type { Hook } from './hooks.ts'
import type { WebhookMeter } from './meter.ts'
import type { Asking } from './verdict.ts'

export interface WebhookTools extends Asking {
  readonly forms: Forms
  readonly meter: WebhookMeter
}

/** The form in which the webhook wants to see the request; undefined when it does not. Throws StatusError. */
export async function formWanted(
  { forms }: WebhookTools,
  { criteria }: Hook,
  attributes: Attributes,
): Promise<Form | undefined> {
  const matching = matchRequest(criteria, attributes, forms)
  return matching === undefined ? undefined : matching
}
