/** `hyperkube server`: runs the management server, which proxies requests of users to many clusters. */
import { rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'

import { kubeconfigText } from '#client/connection/kubeconfig.ts'
import { aborted } from '#lib/abort.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { type ManagementPlan, type RunningManagement, startManagement } from '#management/server.ts'
import { OWN_REPOSITORY } from '#model/own-image.ts'
import { hyperkubeVersion, kubernetesVersion } from '#model/version.ts'

import { kubectlRunner } from '../build/kubectl-runner.ts'
import { AUDIT_FLAGS, openAuditLog } from './audit-log.ts'
import { SERVER_COMMANDS } from './backup.ts'
import { DATA_FLAGS, datastoreOf, ETCD_FLAGS, etcdFiles, lockData, serverDataDir } from './server-data.ts'
import { createUpPrograms } from './up-programs.ts'

const FLAGS = {
  server: {
    ...DATA_FLAGS,
    listen: flag(string, '127.0.0.1:8443', 'The `address` and port for users and agents, such as 0.0.0.0:443'),
    'server-url': flag(
      string,
      '',
      'The `URL` at which users and agents reach the server, or its load balancer (default: derived from --listen)',
    ),
    'tls-cert-file': flag(
      string,
      '',
      'PEM `file` with the certificate of the server (default: signed by an authority that the server creates)',
    ),
    'tls-private-key-file': flag(string, '', 'PEM `file` with the key of --tls-cert-file'),
    'trusted-proxies': flag(
      strings,
      [],
      'Addresses and CIDR ranges of proxies whose X-Forwarded-For header is trusted',
    ),
    'api-port': flag(int, 0, 'Port on 127.0.0.1 of the API server of the management cluster. 0 picks a free port.'),
    'agent-image': flag(string, '', 'The `image` of the agent in imported clusters'),
    'etcd-binary': flag(
      string,
      '',
      'etcd `program` to upload to machines of built clusters (default: the one in the local PATH, or the one installed on the machine)',
    ),
  },
  replicas: {
    ...ETCD_FLAGS,
    'replica-token-file': flag(
      string,
      '',
      '`file` with the token of the replicas: a copy of replica-token in the data directory of another replica',
    ),
    'peer-address': flag(
      string,
      '',
      'The `address` at which other replicas reach this one, with or without a port (default: that of --listen, or the first address of the machine)',
    ),
  },
  'audit log': AUDIT_FLAGS,
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

type ServerInvocation = Invocation<typeof FLAGS>

const GRACE_MS = 3000
/** Has the link for the first log-in until it was used. */
const FIRST_LOGIN_FILE = 'first-login'
const KUBECONFIG_FILE = 'admin.kubeconfig'

export const server: Program = defineProgram({
  name: 'server',
  long:
    'server manages many Kubernetes clusters from one place: users log in once and reach every cluster with their permissions.\n\n' +
    'An agent in each cluster connects to the server, so the server needs no access to the networks of clusters.',
  version: kubernetesVersion(),
  flags: FLAGS,
  commands: [{ title: 'Available commands', commands: SERVER_COMMANDS }],
  run: runServer,
})

async function runServer(invocation: ServerInvocation, signal: AbortSignal): Promise<number> {
  const { clock, stdout } = invocation
  const startedMs = clock.elapsed()
  const plan = await planOf(invocation)
  await using closing = new AsyncDisposableStack()
  await lockData(plan.dataDir, closing)
  const audit = await openAuditLog({ ...invocation, defaultPath: join(plan.dataDir, 'audit.log') })
  closing.defer(() => audit.close())
  const running = await startManagement(
    plan,
    {
      ...invocation,
      host: hostname(),
      graceMs: GRACE_MS,
      audit: (event) => audit.write(event),
      lostAuditLines: () => audit.lost,
      // Replicas that share an etcd cluster would start the clusters of one another.
      upPrograms: plan.datastore.startsWith('sqlite:')
        ? createUpPrograms(join(plan.dataDir, 'clusters'), invocation.env)
        : undefined,
      onFirstLogin: () => rm(join(plan.dataDir, FIRST_LOGIN_FILE), { force: true }),
      build: { env: invocation.env, kubectl: kubectlRunner(invocation) },
    },
    closing,
  ).catch(explain)
  await writeAccess(running, plan)
  closing.use(tidyWhenQuiet(clock))
  stdout.write(`${greeting(running, plan, Math.round(clock.elapsed() - startedMs))}\n`)
  await aborted(signal)
  return 0
}

/** The administrator's kubeconfig for the management cluster, the authority of the port, and the link for the first log-in. */
async function writeAccess({ apiUrl, pki, firstLogin }: RunningManagement, { dataDir }: ManagementPlan): Promise<void> {
  const text = kubeconfigText({
    name: 'hyperkube-server',
    server: apiUrl,
    certificateAuthority: pki.ca.certificatePem,
    clientCertificate: pki.admin.certificate,
    clientKey: pki.admin.key,
  })
  await writeFileAtomically(join(dataDir, KUBECONFIG_FILE), text, { mode: 0o600 })
  await writeFileAtomically(join(dataDir, 'hyperkube-ca.crt'), `${pki.ca.certificatePem.trim()}\n`, { mode: 0o644 })
  const link = join(dataDir, FIRST_LOGIN_FILE)
  if (firstLogin === undefined) await rm(link, { force: true })
  else await writeFileAtomically(link, `${firstLogin.url}\n`, { mode: 0o600 })
}

function greeting({ url, ca, firstLogin }: RunningManagement, { dataDir }: ManagementPlan, ms: number): string {
  return [
    `Ready in ${ms} ms: ${url}`,
    ...(ca === undefined ? [] : [`Authority of its certificate: ${join(dataDir, 'hyperkube-ca.crt')}`]),
    ...(firstLogin === undefined
      ? []
      : [
          `Set the password of user "${firstLogin.username}", once and until ${new Date(firstLogin.expiresAtMs).toISOString()}: ${firstLogin.url}`,
        ]),
    `Management API: kubectl --kubeconfig ${join(dataDir, KUBECONFIG_FILE)} get clusters`,
  ].join('\n')
}

async function planOf({ flags, env, cwd, readFile }: ServerInvocation): Promise<ManagementPlan> {
  const dataDir = serverDataDir(flags['data-dir'], { env, cwd })
  const [certificateFile, keyFile] = [flags['tls-cert-file'], flags['tls-private-key-file']]
  if ((certificateFile === '') !== (keyFile === ''))
    throw new ProgramError('--tls-cert-file and --tls-private-key-file must be set together')
  const certificate =
    certificateFile === '' ? undefined : { certificate: await readFile(certificateFile), key: await readFile(keyFile) }
  return {
    dataDir,
    datastore: datastoreOf(flags.datastore, dataDir, cwd),
    ...(await replicaPlan(flags, readFile)),
    listen: listenAddress(flags.listen),
    apiPort: flags['api-port'],
    serverUrl: serverUrl(flags['server-url']),
    certificate,
    agentImage: flags['agent-image'] === '' ? `${OWN_REPOSITORY}:${hyperkubeVersion()}` : flags['agent-image'],
    etcdBinary: flags['etcd-binary'] === '' ? '' : resolve(cwd, flags['etcd-binary']),
    trustedProxies: flags['trusted-proxies'],
    version: hyperkubeVersion(),
  }
}

async function replicaPlan(
  flags: ServerInvocation['flags'],
  readFile: ServerInvocation['readFile'],
): Promise<Pick<ManagementPlan, 'etcd' | 'replicaToken' | 'peerAddress'>> {
  const tokenFile = flags['replica-token-file']
  const token = tokenFile === '' ? undefined : await readFile(tokenFile)
  const peerAddress = flags['peer-address'] === '' ? undefined : flags['peer-address']
  return { etcd: etcdFiles(flags), replicaToken: token?.trim(), peerAddress }
}

function listenAddress(text: string): ManagementPlan['listen'] {
  const [, host = '', port = ''] = /^(\[[\da-f:]+\]|[^:]*):(\d{1,5})$/i.exec(text) ?? []
  if (port === '' || Number(port) > 65_535)
    throw new ProgramError(`--listen: "${text}" is not an address with a port, such as 0.0.0.0:443`)
  return { host: host === '' ? '0.0.0.0' : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

function serverUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  const isPlain =
    url !== null && url.protocol === 'https:' && url.pathname === '/' && url.search === '' && url.username === ''
  if (!isPlain) throw new ProgramError(`--server-url: "${text}" is not of the form https://host[:port]`)
  return url.origin
}

/** Problems that the user can solve, without a stack trace. */
function explain(error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') throw new ProgramError('The port of --listen is in use; set another one', { cause: error })
  if (code === 'EACCES') throw new ProgramError(message, { cause: error })
  throw error
}
