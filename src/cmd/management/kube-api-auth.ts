/** `hyperkube kube-api-auth`: authenticates tokens of the management server for a cluster's API server. */
import { resolve } from 'node:path'

import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { createAuthEndpoint, loopbackAddress } from '#cluster-agent/api-auth/endpoint.ts'
import { followRecords } from '#cluster-agent/api-auth/live-records.ts'
import { aborted } from '#lib/abort.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { kubernetesVersion, userAgent } from '#model/version.ts'

const FLAGS = {
  'kube-api-auth': {
    listen: flag(string, '127.0.0.1:6440', 'The loopback `address` and port for TokenReviews, over plain HTTP'),
    kubeconfig: flag(string, '', 'kubeconfig `file` of the cluster (default: the service account of the pod)'),
    'cache-file': flag(
      string,
      '',
      '`file` that keeps the last known tokens and users, for times when the API server does not answer',
    ),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

const GRACE_MS = 2000

export const kubeApiAuth: Program = defineProgram({
  name: 'kube-api-auth',
  long:
    'kube-api-auth answers the token webhook of kube-apiserver (--authentication-token-webhook-config-file), so that users of a ' +
    'management server (hyperkube server) reach the cluster directly with their API tokens, also while the server is away.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runApiAuth,
})

async function runApiAuth(invocation: Invocation<typeof FLAGS>, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log, env, cwd, readFile } = invocation
  const address = loopbackAddress(flags.listen)
  if (address === undefined)
    throw new ProgramError(`--listen: "${flags.listen}" is not a loopback address with a port, such as 127.0.0.1:6440`)
  await using closing = new AsyncDisposableStack()
  const config = await programConfig({ kubeconfig: flags.kubeconfig, master: '' }, { env, cwd, readFile }).catch(
    explain,
  )
  const connection = await openConnection(config, { clock, readFile, env })
  closing.defer(() => connection.close())
  const client = new ApiClient({ ...connection, clock, userAgent: userAgent('hyperkube-kube-api-auth') })
  const records = await followRecords({ client, cacheFile: cacheFile(invocation), random, log })
  closing.use(records)
  const server = createAuthEndpoint({ clock, log, records: () => records.current() })
  await server.listen(address).catch(explain)
  closing.defer(() => server.drain(GRACE_MS))
  log.info('Serving TokenReviews', { address: flags.listen })
  await aborted(signal)
  return 0
}

function cacheFile({ flags, cwd }: Invocation<typeof FLAGS>): string {
  return flags['cache-file'] === '' ? '' : resolve(cwd, flags['cache-file'])
}

function explain(cause: unknown): never {
  const isInUse = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
  if (isInUse) throw new ProgramError('The port of --listen is in use; set another one', { cause })
  throw cause instanceof ConfigError ? new ProgramError(cause.message, { cause }) : cause
}
