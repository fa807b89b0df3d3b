/** kubectl api-versions: lists the API versions of the server. */
import { apiVersionOf } from '#meta/kind.ts'

import { type Command, defineCommand, usageError } from '../command.ts'

export const apiVersions: Command = defineCommand({
  name: 'api-versions',
  use: '[options]',
  long: 'List the API versions that the server supports, as "group/version".',
  examples: '# List the supported API versions\nkubectl api-versions',
  flags: {},
  async run(invocation) {
    const { args, session, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `unexpected arguments: [${args.join(' ')}]`)
    const { kinds, unknown } = await (await session.mapper()).freshKinds()
    const versions = [...new Set([...kinds.map(apiVersionOf), ...unknown])].sort()
    stdout.write(versions.map((version) => `${version}\n`).join(''))
  },
})
