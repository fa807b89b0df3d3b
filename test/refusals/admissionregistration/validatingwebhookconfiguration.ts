import { ValidatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badWebhooks, configuration } from './webhooks.ts'

export const validatingWebhookConfiguration: KindCases = {
  kind: ValidatingWebhookConfigurations,
  valid: configuration,
  refused: [...badWebhooks, ...badMetadataUpdates],
}
