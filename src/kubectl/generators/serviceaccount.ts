/** kubectl create serviceaccount: creates a ServiceAccount. */
import type { Command } from '../command.ts'
import { beginning, defineGenerator } from './generator.ts'

export const serviceaccount: Command = defineGenerator({
  name: 'serviceaccount',
  aliases: ['sa'],
  use: 'NAME [--dry-run=server|client|none] [options]',
  long: 'Create a service account.',
  failure: 'failed to create serviceaccount: ',
  flags: {},
  make: (name) => ({ ...beginning('v1', 'ServiceAccount'), metadata: { name } }),
})
