/**
 * `hyperkube up`: a cluster on this machine, in the foreground until Ctrl-C; started again, the same cluster goes on. For
 * now the cluster is its API server: controllers, scheduler and nodes join it as they are built.
 */
import { mkdir } from 'node:fs/promises'
import { homedir, networkInterfaces } from 'node:os'
import { join, resolve } from 'node:path'

import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { ApiServer } from '#apiserver/apiserver.ts'
import { ensure } from '#apiserver/bootstrap/ensure.ts'
import { createKubernetesService } from '#apiserver/bootstrap/kubernetes-service.ts'
import { mergeKubeconfig } from '#client/kubeconfig.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import { startControlPlane } from '#control-plane/parts.ts'
import { flag } from '#lib/flags/flags.ts'
import { int, oneOf, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion, versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { defaultEncryption } from '#storage/encryption/config.ts'
import { openBackend } from '#storage/index.ts'
import { type LocalPki, openLocalPki } from '#supervisor/local-pki.ts'

import { DATA_DIR_FLAGS, dataDir as dataDirOf } from './data-dir.ts'

const FLAGS = {
  cluster: {
    ...DATA_DIR_FLAGS,
    'secure-port': flag(int, 6443, 'port of the API server; 0 picks a free one'),
    'bind-address': flag(string, '127.0.0.1', 'address the API server listens on'),
    kubeconfig: flag(string, '', 'file that gets the context "hyperkube" (default: ~/.kube/config)'),
    output: flag(oneOf('', 'json'), '', 'json: one JSON line when ready', { shorthand: 'o' }),
  },
  logs: LOG_FLAGS,
} as const

type UpInvocation = Invocation<typeof FLAGS>

/** Addresses of services. */
const SERVICE_CIDR = '10.0.0.0/24'

/** How long requests that are running may take after Ctrl-C. */
const GRACE_MS = 5000

export const up: Program = defineProgram({
  name: 'up',
  long: 'up starts a cluster on this machine, or resumes the one in its data directory, and runs it until it is stopped.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runUp,
})

async function runUp(invocation: UpInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock, random } = invocation
  const startedMs = clock.elapsed()
  const say = createReporter(invocation)
  // Whatever ends it, a signal or an error: what was opened last is closed first.
  await using closing = new AsyncDisposableStack()
  const { path: dataDir, location: datastore } = dataDirOf(flags, invocation)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const host = flags['bind-address']
  const pki = await openLocalPki({
    folder: join(dataDir, 'pki'),
    hosts: [...new Set([...SERVING_NAMES, host])],
    clock,
    random,
  })
  say('Certificates', join(dataDir, 'pki'))
  const backend = await openStore(datastore, invocation)
  closing.defer(() => backend.close())
  say('Storage', datastore)
  const server = await startServer(invocation, { dataDir, pki, backend })
  closing.defer(() => server.stop(GRACE_MS))
  const service = createKubernetesService(server.registry, {
    serviceCidr: SERVICE_CIDR,
    advertiseAddress: reachableAddress(),
    onError: (error) => invocation.log.error(error, 'The service "kubernetes" is not up to date'),
  })
  closing.defer(() => service.withdraw())
  await service.prepare()
  const apiServer = await listen(server, pki, invocation)
  await service.publish(Number(new URL(apiServer).port))
  say('API server', apiServer)
  const kubeconfig = await writeKubeconfig(invocation, pki, apiServer)
  say('Kubeconfig', `${kubeconfig}, context "hyperkube"`)
  announce(invocation, { apiServer, kubeconfig, dataDir, readyMs: Math.round(clock.elapsed() - startedMs), nodes: 0 })
  await aborted(signal)
  say('Stopping', 'requests that are running may finish')
  return 0
}

/** How the API server is reached: from this machine, and from pods through its service. */
const SERVING_NAMES = [
  '127.0.0.1',
  '::1',
  'localhost',
  '10.0.0.1',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
]

interface ServerParts {
  readonly dataDir: string
  readonly pki: LocalPki
  readonly backend: Backend
}

async function startServer(
  { clock, random, log }: UpInvocation,
  { dataDir, pki, backend }: ServerParts,
): Promise<ApiServer> {
  const encryption = await defaultEncryption(join(dataDir, 'encryption.key'), random)
  const kubeletTls = { ...pki.kubeletClient, ca: pki.ca.certificatePem }
  const server = await startControlPlane({
    backend,
    atRest: createAtRest(encryption, random),
    clock,
    random,
    log,
    clientAuthorities: pki.ca.certificatePem,
    frontProxyAuthority: pki.frontProxyCa.certificatePem,
    serviceAccountKey: pki.serviceAccountKey,
    issuer: 'https://kubernetes.default.svc.cluster.local',
    serviceCidr: SERVICE_CIDR,
    authorizationModes: ['Node', 'RBAC'],
    isEnabled: createGates(new Map()),
    allowPrivileged: true,
    versionInfo: versionInfo(),
    kubelet: { tls: () => kubeletTls, port: 10_250, addressTypes: NODE_ADDRESSES, timeoutMs: 5_000 },
  })
  await ensure(server.registry, ClusterRoleBindings, KUBELET_ACCESS)
  return server
}

/** How nodes are reached; by name only where they have no address. */
const NODE_ADDRESSES = ['InternalIP', 'ExternalIP', 'Hostname']

/** Kubelets ask the API server what a caller may do, even when it is the API server itself that calls. */
const KUBELET_ACCESS: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: 'hyperkube:apiserver-kubelet-client' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
}

/** Returns the URL. */
async function listen(server: ApiServer, pki: LocalPki, { flags }: UpInvocation): Promise<string> {
  const host = flags['bind-address']
  const tls = { ...pki.apiServer, clientAuthorities: [pki.ca.certificatePem, pki.frontProxyCa.certificatePem] }
  try {
    const address = await server.listen({ host, port: flags['secure-port'] }, tls)
    return `https://${host.includes(':') ? `[${host}]` : host}:${'port' in address ? address.port : 0}`
  } catch (error) {
    throw new ProgramError(portInUse(error, flags['secure-port']), { cause: error })
  }
}

/** Returns the file. */
async function writeKubeconfig({ flags, cwd }: UpInvocation, pki: LocalPki, server: string): Promise<string> {
  const file = flags.kubeconfig === '' ? join(homedir(), '.kube', 'config') : resolve(cwd, flags.kubeconfig)
  await mergeKubeconfig(file, {
    name: 'hyperkube',
    server,
    certificateAuthority: pki.ca.certificatePem,
    clientCertificate: pki.admin.certificate,
    clientKey: pki.admin.key,
  })
  return file
}

interface Ready {
  readonly apiServer: string
  readonly kubeconfig: string
  readonly dataDir: string
  readonly readyMs: number
  readonly nodes: number
}

function announce({ flags, stdout }: UpInvocation, ready: Ready): void {
  if (flags.output === 'json') {
    stdout.write(`${JSON.stringify(ready)}\n`)
    return
  }
  stdout.write(
    [
      `\nReady in ${ready.readyMs} ms. This cluster has an API server and no nodes yet: objects are stored and served, nothing runs.`,
      `Try:   kubectl --context hyperkube get namespaces`,
      `Stop:  Ctrl-C; the next "hyperkube up" goes on where this one stopped.\n\n`,
    ].join('\n'),
  )
}

/** One line for each step, with the time since the last. */
function createReporter({ flags, stdout, clock }: UpInvocation): (what: string, where: string) => void {
  let lastMs = clock.elapsed()
  return (what, where) => {
    const nowMs = clock.elapsed()
    if (flags.output !== 'json')
      stdout.write(`${what.padEnd(14)}${`${Math.round(nowMs - lastMs)} ms`.padStart(8)}   ${where}\n`)
    lastMs = nowMs
  }
}

async function openStore(datastore: string, { clock, random, log }: UpInvocation): ReturnType<typeof openBackend> {
  try {
    return await openBackend(datastore, { clock, random, log: (message) => log.info(message) })
  } catch (error) {
    throw new ProgramError(`Cannot open the datastore "${datastore}": ${(error as Error).message}`, { cause: error })
  }
}

function portInUse(error: unknown, port: number): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use; is another cluster running? Choose another with --secure-port`
  return `The API server cannot listen: ${message}`
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}

/** The first address of this machine that is not loopback: what pods would reach the server by. */
function reachableAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}
