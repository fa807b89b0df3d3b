/** kubectl api-versions: the group versions that the server serves. */
import { apiVersionOf } from '#meta/kind.ts'

import { type Command, defineCommand, usageError } from '../command.ts'

export const apiVersions: Command = defineCommand({
  name: 'api-versions',
  use: '[options]',
  long: 'Print the API versions that the server serves, as "group/version".',
  examples: '# Print the API versions that are served\nkubectl api-versions',
  flags: {},
  async run(invocation) {
    const { args, session, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `unexpected arguments: [${args.join(' ')}]`)
    const { kinds, unknown } = await (await session.mapper()).freshKinds()
    const versions = [...new Set([...kinds.map(apiVersionOf), ...unknown])].sort()
    stdout.write(versions.map((version) => `${version}\n`).join(''))
  },
})
