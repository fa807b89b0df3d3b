/** The ValidatingWebhookConfiguration resource: webhooks that may reject requests. */
import { type ValidatingWebhookConfiguration, ValidatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'

import { webhookRules } from './webhooks.ts'

export const validatingWebhookConfiguration: Resource<ValidatingWebhookConfiguration> =
  defineResource<ValidatingWebhookConfiguration>({ kind: ValidatingWebhookConfigurations, ...webhookRules(false) })
