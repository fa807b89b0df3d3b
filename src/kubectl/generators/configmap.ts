/** kubectl create configmap: creates a ConfigMap from literals, files, directories and env files. */
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { strings, stringArray } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { configMapKey } from '#meta/validation/names.ts'

import type { Command } from '../command.ts'
import { contentHash } from '../content-hash.ts'
import { KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'
import { entriesFrom } from './sources.ts'

export const configmap: Command = defineGenerator({
  name: 'configmap',
  aliases: ['cm'],
  use: 'NAME [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none] [options]',
  long: 'Create a config map from files, directories or literal values.',
  failure: 'failed to create configmap: ',
  flags: {
    'from-file': flag(strings, [], 'File or directory of files, optionally with a [key=] prefix.'),
    'from-literal': flag(stringArray, [], 'Literal key and value: mykey=somevalue.'),
    'from-env-file': flag(strings, [], 'File with lines of the form key=value.'),
    'append-hash': flag(bool, false, 'Append a hash of the content to the name.'),
  },
  async make(name, { flags, cwd, env }) {
    const entries = await entriesFrom({ flags, cwd, env }, 'config')
    const data: Record<string, string> = {}
    const binaryData: Record<string, string> = {}
    for (const [key, value] of entries) {
      const problems = configMapKey(key)
      if (problems.length > 0) {
        throw new KubectlError(`${goQuote(key)} is not a valid key name for a ConfigMap: ${problems.join(',')}`)
      }
      if (Object.hasOwn(data, key) || Object.hasOwn(binaryData, key)) {
        throw new KubectlError(
          `cannot add key ${goQuote(key)}, another key by that name already exists in Data for ConfigMap ${goQuote(name)}`,
        )
      }
      const text = value.toString('utf8')
      if (Buffer.from(text).equals(value)) data[key] = text
      else binaryData[key] = value.toString('base64')
    }
    const content = {
      ...(Object.keys(data).length > 0 && { data: sorted(data) }),
      ...(Object.keys(binaryData).length > 0 && { binaryData: sorted(binaryData) }),
    }
    const hashed = { ...('binaryData' in content && { binaryData: content.binaryData }), data: sorted(data) }
    const fullName = flags['append-hash'] ? `${name}-${contentHash({ ...hashed, kind: 'ConfigMap', name })}` : name
    return { ...beginning('v1', 'ConfigMap'), metadata: { name: fullName }, ...content }
  },
})

function sorted(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)))
}
