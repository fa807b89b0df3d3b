/**
 * `hyperkube up`: a cluster on this machine, in the foreground until Ctrl-C; started again, the same cluster goes on. For
 * now the cluster is its API server, its controllers and its scheduler: nodes join it as they are built.
 */
import { mkdir } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { join, resolve } from 'node:path'

import { ServiceAccounts } from '#apis/core/v1.ts'
import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { mergeKubeconfig } from '#client/kubeconfig.ts'
import { AUDIT_FLAGS } from '#control-plane/flags/audit-flags.ts'
import { type Settings, settingsWith } from '#control-plane/flags/flags.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { startApiServer } from '#control-plane/start.ts'
import type { Controller } from '#controllers/controller.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { chooseControllers } from '#controllers/selection.ts'
import { controllerSettings, type ControllerSettings } from '#controllers/settings.ts'
import { sleep } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int, oneOf, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'
import { type LocalPki, openLocalPki } from '#supervisor/local-pki.ts'

import { type DataDir, DATA_DIR_FLAGS, dataDir as dataDirOf } from './data-dir.ts'
import { startInProcessControllers } from './in-process-controllers.ts'
import type { InProcessScheduler } from './in-process-scheduler.ts'

const FLAGS = {
  cluster: {
    ...DATA_DIR_FLAGS,
    'secure-port': flag(int, 6443, 'port of the API server; 0 picks a free one'),
    'bind-address': flag(string, '127.0.0.1', 'address the API server listens on'),
    kubeconfig: flag(string, '', 'file that gets the context "hyperkube" (default: ~/.kube/config)'),
    controllers: flag(
      strings,
      ['*'],
      'which controllers run, as for kube-controller-manager; empty: none, for those who bring their own',
    ),
    scheduler: flag(bool, true, 'whether pods get nodes; false: for those who bring their own scheduler'),
    output: flag(oneOf('', 'json'), '', 'json: one JSON line when ready', { shorthand: 'o' }),
  },
  auditing: { ...AUDIT_FLAGS },
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
  const folder = join(dataDir, 'pki')
  const pki = await openLocalPki({ folder, hosts: [...new Set([...SERVING_NAMES, host])], clock, random })
  say('Certificates', folder)
  const running = await startServer(invocation, { path: dataDir, location: datastore }, closing)
  const apiServer = `https://${host.includes(':') ? `[${host}]` : host}:${running.port}`
  say('API server', `${apiServer}, objects in ${datastore}`)
  const isEnabled = createGates(new Map())
  const controllers = chosenControllers(invocation).filter(({ gates = [] }) => gates.every(isEnabled))
  const settings = controllerSettings(signingWith((file) => join(folder, file)))
  startInProcessControllers(running, { ...invocation, controllers, settings, isEnabled }, closing)
  const scheduling = flags.scheduler ? startScheduling(running, { ...invocation, isEnabled }, closing) : undefined
  if (controllers.some(({ name }) => name === 'serviceaccount-controller'))
    await untilPodsMayBeMade(running, invocation)
  say('Controllers', controllers.length === 0 ? 'none' : `${controllers.length} in this process`)
  await scheduling
  say('Scheduler', flags.scheduler ? 'in this process' : 'none')
  const kubeconfig = await writeKubeconfig(invocation, pki, apiServer)
  say('Kubeconfig', `${kubeconfig}, context "hyperkube"`)
  announce(invocation, { apiServer, kubeconfig, dataDir, readyMs: Math.round(clock.elapsed() - startedMs), nodes: 0 })
  await aborted(signal)
  say('Stopping', 'requests that are running may finish')
  return 0
}

/** Who brings their own does not load it. */
async function startScheduling(
  running: RunningServer,
  around: Omit<InProcessScheduler, 'host'>,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { startInProcessScheduler } = await import('./in-process-scheduler.ts')
  startInProcessScheduler(running, { ...around, host: hostname() }, closing)
}

/** Throws ProgramError for names that nobody knows. */
function chosenControllers({ flags, log }: UpInvocation): readonly Controller[] {
  const { controllers, errors, missing } = chooseControllers(CONTROLLERS, flags.controllers)
  if (errors.length > 0) throw new ProgramError(errors.join(', '))
  for (const name of missing) log.info('The controller is not there', { controller: name })
  return controllers
}

/** One authority for everything, as kubeadm has it. */
function signingWith(pki: (file: string) => string): Partial<ControllerSettings> {
  return {
    'root-ca-file': pki('ca.crt'),
    'service-account-private-key-file': pki('sa.key'),
    'cluster-signing-cert-file': pki('ca.crt'),
    'cluster-signing-key-file': pki('ca.key'),
    'service-cluster-ip-range': SERVICE_CIDR,
  }
}

/** A pod needs the account of its namespace. It comes soon, and nobody who hears "ready" should find it missing. */
async function untilPodsMayBeMade({ server }: RunningServer, { clock }: UpInvocation): Promise<void> {
  const limitMs = clock.elapsed() + ACCOUNT_MS
  while (
    clock.elapsed() < limitMs &&
    (await server.registry.get(ServiceAccounts, 'default', 'default')) === undefined
  ) {
    await sleep(clock, 10)
  }
}

/** Much more than it takes; something is wrong with the controllers then, and the log says what. */
const ACCOUNT_MS = 5000

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

async function startServer(
  { clock, random, log, cwd, stdout, readFile, flags }: UpInvocation,
  dir: DataDir,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  const around = { clock, random, log, cwd, stdout, readFile, graceMs: GRACE_MS }
  const running = await startApiServer(settingsOf(flags, dir), around, closing).catch(explainPort(flags))
  const { registry } = running.server
  await registry.writer.ensure(ClusterRoleBindings, KUBELET_ACCESS)
  return running
}

/** As kubeadm would, on one machine. */
function settingsOf(flags: UpInvocation['flags'], { path, location }: DataDir): Settings {
  const pki = (file: string): string => join(path, 'pki', file)
  const own = Object.keys(AUDIT_FLAGS).map((name) => [name, flags[name as keyof typeof flags]])
  return settingsWith({
    ...(Object.fromEntries(own) as Partial<Settings>),
    datastore: location,
    'encryption-key-file': join(path, 'encryption.key'),
    'bind-address': flags['bind-address'],
    'secure-port': flags['secure-port'],
    'tls-cert-file': pki('apiserver.crt'),
    'tls-private-key-file': pki('apiserver.key'),
    'client-ca-file': pki('ca.crt'),
    'requestheader-client-ca-file': pki('front-proxy-ca.crt'),
    'requestheader-allowed-names': ['front-proxy-client'],
    'requestheader-username-headers': ['X-Remote-User'],
    'requestheader-uid-headers': ['X-Remote-Uid'],
    'requestheader-group-headers': ['X-Remote-Group'],
    'requestheader-extra-headers-prefix': ['X-Remote-Extra-'],
    'proxy-client-cert-file': pki('front-proxy-client.crt'),
    'proxy-client-key-file': pki('front-proxy-client.key'),
    'service-account-signing-key-file': pki('sa.key'),
    'service-account-issuer': ['https://kubernetes.default.svc.cluster.local'],
    'service-cluster-ip-range': SERVICE_CIDR,
    'authorization-mode': ['Node', 'RBAC'],
    'allow-privileged': true,
    'kubelet-certificate-authority': pki('ca.crt'),
    'kubelet-client-certificate': pki('apiserver-kubelet-client.crt'),
    'kubelet-client-key': pki('apiserver-kubelet-client.key'),
    'kubelet-preferred-address-types': NODE_ADDRESSES,
  })
}

/** How nodes are reached; by name only where they have no address. */
const NODE_ADDRESSES = ['InternalIP', 'ExternalIP', 'Hostname']

/** Kubelets ask the API server what a caller may do, even when it is the API server itself that calls. */
const KUBELET_ACCESS: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: 'hyperkube:apiserver-kubelet-client' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
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
      `\nReady in ${ready.readyMs} ms. This cluster has an API server, controllers and a scheduler and no nodes yet: pods of Deployments go to the nodes that you make.`,
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

function explainPort(flags: UpInvocation['flags']): (error: unknown) => never {
  return (error) => {
    const { cause } = error as Error
    if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'EADDRINUSE') throw error
    const port = flags['secure-port']
    throw new ProgramError(`Port ${port} is in use; is another cluster running? Choose another with --secure-port`, {
      cause,
    })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}
