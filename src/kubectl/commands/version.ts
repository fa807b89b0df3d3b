/** kubectl version: prints the client and server versions. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringifyJson } from '#lib/json/json.ts'
import { parseJson } from '#lib/json/json.ts'
import { type VersionInfo, versionInfo } from '#model/version.ts'

import { type Command, defineCommand } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'

/** The kustomize version that the room `kustomize` implements. */
const KUSTOMIZE_VERSION = 'v5.8.1'

/** The supported difference in minor versions between client and server. */
const MAX_SKEW = 1

export const version: Command = defineCommand({
  name: 'version',
  use: '[flags] [options]',
  long: 'Print the client version and the version of the server in the current context.',
  examples: '# Print the client and server versions\nkubectl version',
  flags: {
    client: flag(bool, false, 'Print only the client version, without connecting to a server.'),
    output: flag(string, '', "One of 'yaml' or 'json'.", { shorthand: 'o' }),
  },
  async run({ flags, args, session, stdout, stderr }) {
    const { client: clientOnly, output } = flags
    if (!clientOnly && args.length > 0) throw new KubectlError(`extra arguments: [${args.join(' ')}]`)
    if (!['', 'yaml', 'json'].includes(output)) throw new KubectlError("--output must be 'yaml' or 'json'")
    if (!clientOnly) await session.config()
    const clientVersion = versionInfo()
    let serverVersion: VersionInfo | undefined
    let failure: Error | undefined
    if (!clientOnly) {
      const read = async (): Promise<VersionInfo> => {
        const bytes = await (await session.rest()).raw({ method: 'GET', path: '/version' })
        return parseJson(bytes) as unknown as VersionInfo
      }
      serverVersion = await read().catch((error: unknown) => void (failure = asError(error)))
    }
    stdout.write(await versionText(output, { clientVersion, kustomizeVersion: KUSTOMIZE_VERSION, serverVersion }))
    const warning = serverVersion === undefined ? '' : skewWarning(clientVersion, serverVersion)
    if (warning !== '') {
      if (flags['warnings-as-errors']) throw new KubectlError(warning)
      stderr.write(`Warning: ${warning}\n`)
    }
    if (failure !== undefined) throw failure
  },
})

interface Versions {
  readonly clientVersion: VersionInfo
  readonly kustomizeVersion: string
  readonly serverVersion: VersionInfo | undefined
}

async function versionText(output: string, versions: Versions): Promise<string> {
  if (output === 'json') return `${stringifyJson(versions, { indent: 2 })}\n`
  if (output === 'yaml') return `${(await import('#lib/yaml/write.ts')).stringifyYaml(versions)}\n`
  const { clientVersion, kustomizeVersion, serverVersion } = versions
  const server = serverVersion === undefined ? '' : `Server Version: ${serverVersion.gitVersion}\n`
  return `Client Version: ${clientVersion.gitVersion}\nKustomize Version: ${kustomizeVersion}\n${server}`
}

/** Empty if the versions are compatible. */
export function skewWarning(client: Pick<VersionInfo, 'gitVersion'>, server: Pick<VersionInfo, 'gitVersion'>): string {
  const parts = ({ gitVersion }: Pick<VersionInfo, 'gitVersion'>): [number, number] => {
    const [, major = '', minor = ''] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? []
    return [Number(major), Number(minor)]
  }
  const [[ourMajor, ourMinor], [major, minor]] = [parts(client), parts(server)]
  if (ourMajor === major && Math.abs(ourMinor - minor) <= MAX_SKEW) return ''
  return `version difference between client (${ourMajor}.${ourMinor}) and server (${major}.${minor}) exceeds the supported minor version skew of +/-${MAX_SKEW}`
}
