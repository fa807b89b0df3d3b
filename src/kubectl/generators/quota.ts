/** kubectl create quota: creates a ResourceQuota with limits and scopes. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { compareText } from '#lib/go/text.ts'
import { canonicalQuantity } from '#meta/quantity.ts'

import type { Command } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

export const quota: Command = defineGenerator({
  name: 'quota',
  aliases: ['resourcequota'],
  use: 'NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2] [--dry-run=server|client|none] [options]',
  long: 'Create a resource quota with hard limits and scopes.',
  failure: 'failed to create quota: ',
  flags: {
    hard: flag(string, '', 'Comma-separated hard limits, as resource=quantity.'),
    scopes: flag(string, '', 'Comma-separated scopes that an object must all match.'),
  },
  make(name, { flags }) {
    const hard = hardOf(flags.hard)
    const scopes = flags.scopes === '' ? [] : flags.scopes.split(',')
    if (scopes.includes('')) throw new KubectlError('invalid resource quota scope ""')
    return {
      ...beginning('v1', 'ResourceQuota'),
      metadata: { name },
      spec: { ...(hard !== undefined && { hard }), ...(scopes.length > 0 && { scopes }) },
      status: {},
    }
  },
})

/** Throws KubectlError. */
export function hardOf(text: string): Record<string, string> | undefined {
  if (text === '') return undefined
  const pairs = text.split(',').map((statement): [string, string] => {
    const [name = '', amount = '', ...rest] = statement.split('=')
    if (!statement.includes('=') || rest.length > 0) {
      throw new KubectlError(`Invalid argument syntax ${statement}, expected <resource>=<value>`)
    }
    try {
      return [name, canonicalQuantity(amount)]
    } catch (cause) {
      throw new KubectlError(asError(cause).message, { cause })
    }
  })
  return Object.fromEntries(pairs.sort(([one], [other]) => compareText(one, other)))
}
