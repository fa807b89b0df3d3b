/** The MutatingWebhookConfiguration resource: webhooks that may change requests before validation. */
import { type MutatingWebhookConfiguration, MutatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'

import { webhookRules } from './webhooks.ts'

export const mutatingWebhookConfiguration: Resource<MutatingWebhookConfiguration> =
  defineResource<MutatingWebhookConfiguration>({ kind: MutatingWebhookConfigurations, ...webhookRules(true) })
