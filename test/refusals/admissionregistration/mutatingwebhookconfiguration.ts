import { MutatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badWebhooks, configuration } from './webhooks.ts'

export const mutatingWebhookConfiguration: KindCases = {
  kind: MutatingWebhookConfigurations,
  valid: configuration,
  refused: [
    ...badWebhooks,
    { why: 'an unknown reinvocation policy', set: { '/webhooks/0/reinvocationPolicy': 'Always' } },
    { why: 'an empty reinvocation policy', set: { '/webhooks/0/reinvocationPolicy': '' } },
    ...badMetadataUpdates,
  ],
}
