/** `hyperkube cluster-agent`: the agent in a managed cluster, which connects it to the management server. */
import { Namespaces } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { runClusterAgent } from '#cluster-agent/agent.ts'
import { createApiProxy } from '#cluster-agent/api-proxy.ts'
import {
  credentialInFile,
  credentialInSecret,
  type CredentialStore,
  openCredential,
} from '#cluster-agent/credential.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { hyperkubeVersion, kubernetesVersion, userAgent } from '#model/version.ts'
import { fetchServerCa } from '#supervisor/agent/server-link.ts'

const FLAGS = {
  'cluster agent': {
    server: flag(string, '', 'The `URL` of the management server, such as https://manager.example'),
    token: flag(string, '', 'The registration token, needed for the first connection only'),
    'token-file': flag(string, '', '`file` with the registration token'),
    'certificate-authority': flag(
      string,
      '',
      'PEM `file` with the authority of the server (default: the public authorities)',
    ),
    'ca-checksum': flag(
      string,
      '',
      "SHA-256 of the server's authority, in hex: the agent fetches the authority from the server and compares it",
    ),
    kubeconfig: flag(string, '', 'kubeconfig `file` of the cluster (default: the service account of the pod)'),
    'credential-secret': flag(string, '', 'Secret that keeps the credential of the agent, as namespace/name'),
    'credential-file': flag(string, '', '`file` that keeps the credential of the agent, instead of a Secret'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

type AgentInvocation = Invocation<typeof FLAGS>

export const clusterAgent: Program = defineProgram({
  name: 'cluster-agent',
  long:
    'cluster-agent connects a cluster to a management server (hyperkube server). It makes the only connection, outwards; the ' +
    'server sends requests of its users through it. The credentials for the cluster stay in the cluster.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runAgent,
})

async function runAgent(invocation: AgentInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log, env, cwd, readFile } = invocation
  if (!/^https:\/\/[^/]+$/.test(flags.server.replace(/\/$/, '')))
    throw new ProgramError('--server must be of the form https://host[:port]')
  const token = flags['token-file'] === '' ? flags.token : (await readFile(flags['token-file'])).trim()
  const server = flags.server.replace(/\/$/, '')
  await using closing = new AsyncDisposableStack()
  const config = await programConfig({ kubeconfig: flags.kubeconfig, master: '' }, { env, cwd, readFile }).catch(
    explain,
  )
  const connection = await openConnection(config, { clock, readFile, env })
  closing.defer(() => connection.close())
  const client = new ApiClient({ ...connection, clock, userAgent: userAgent('hyperkube-cluster-agent') })
  const credential = await openCredential(storeOf(flags, client), random)
  const proxy = createApiProxy({ connection, clock, log })
  closing.defer(() => proxy.close())
  const ca = await authorityOf(invocation, server)
  const describe = async (): Promise<{ uid: string; agentVersion: string }> => {
    const { metadata } = await client.get(Namespaces, { name: 'kube-system' }, { signal })
    return { uid: metadata.uid ?? '', agentVersion: hyperkubeVersion() }
  }
  await runClusterAgent(
    { server, ca, registrationToken: token, credential, describe, proxy, clock, random, log },
    signal,
  )
  return 0
}

function storeOf(flags: AgentInvocation['flags'], client: ApiClient): CredentialStore {
  if (flags['credential-file'] !== '') return credentialInFile(flags['credential-file'])
  const [namespace = '', name = '', ...more] = flags['credential-secret'].split('/')
  if (namespace === '' || name === '' || more.length > 0)
    throw new ProgramError('Set --credential-secret=NAMESPACE/NAME or --credential-file')
  return credentialInSecret(client, namespace, name)
}

async function authorityOf({ flags, clock, readFile }: AgentInvocation, server: string): Promise<string | undefined> {
  const file = flags['certificate-authority']
  if (file !== '') return readFile(file)
  return fetchServerCa(clock, { server, caChecksum: flags['ca-checksum'] })
}

function explain(cause: unknown): never {
  throw cause instanceof ConfigError ? new ProgramError(cause.message, { cause }) : cause
}
