/** kubectl create namespace: creates a Namespace. */
import type { Command } from '../command.ts'
import { beginning, defineGenerator } from './generator.ts'

export const namespace: Command = defineGenerator({
  name: 'namespace',
  aliases: ['ns'],
  use: 'NAME [--dry-run=server|client|none] [options]',
  long: 'Create a namespace.',
  flags: {},
  make: (name) => ({ ...beginning('v1', 'Namespace'), metadata: { name }, spec: {}, status: {} }),
})
