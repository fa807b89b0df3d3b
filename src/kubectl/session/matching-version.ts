/** `--match-server-version`: fails if the server version differs. */
import type { ApiClient } from '#client/api-client.ts'
import { parseJson } from '#lib/json/json.ts'
import { type VersionInfo, versionInfo } from '#model/version.ts'

import { asError, KubectlError } from '../errors.ts'

const MAX_BYTES = 1 << 20

/** Throws KubectlError for a different version, or if the server does not report one. */
export async function requireSameVersion(client: ApiClient, signal: AbortSignal): Promise<void> {
  const server = await readVersion(client, signal).catch((cause: unknown) => {
    throw new KubectlError(`couldn't read version from server: ${asError(cause).message}`, { cause })
  })
  const problem = versionProblem(server, versionInfo())
  if (problem !== undefined) throw new KubectlError(problem)
}

async function readVersion(client: ApiClient, signal: AbortSignal): Promise<VersionInfo> {
  const response = await client.ask({ method: 'GET', path: '/version', signal })
  return parseJson(await response.bytes(MAX_BYTES)) as unknown as VersionInfo
}

/** Undefined if both have the same version. */
export function versionProblem(server: VersionInfo, own: VersionInfo): string | undefined {
  const isSame = (['gitVersion', 'gitCommit', 'gitTreeState'] as const).every((name) => server[name] === own[name])
  return isSame ? undefined : `server version (&${goText(server)}) differs from client version (${goText(own)})`
}

/** Go's form of the struct. */
function goText(version: VersionInfo): string {
  const fields = Object.entries(version).map(
    ([name, value]) => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}:${JSON.stringify(value)}`,
  )
  return `version.Info{${fields.join(', ')}}`
}
