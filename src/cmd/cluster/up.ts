/**
 * `hyperkube up`: runs a cluster on this machine until Ctrl-C or `hyperkube down`; the next start resumes it. The
 * machine is the node if it can run containers. Otherwise, and by default for several nodes, nodes are simulated.
 */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, join, resolve } from 'node:path'

import { kubeconfigFiles, kubeconfigForNewEntries } from '#client/connection/kubeconfig-files.ts'
import { freeName, mergeKubeconfig } from '#client/connection/kubeconfig.ts'
import { type ClusterPlan, runCluster, type RunningCluster } from '#cluster/cluster.ts'
import { joinKubeconfig, makeJoinToken } from '#cluster/joining.ts'
import { keepFresh, type LocalPki, openLocalPki, pkiFolder } from '#cluster/local-pki.ts'
import { volumesFolder } from '#cluster/machine/machine-folders.ts'
import type { NodeRuntime } from '#cluster/runtime-choice.ts'
import { backendFor } from '#cluster/runtime-file.ts'
import { managerSettings, servingNames, serverSettings } from '#cluster/settings.ts'
import { bracketed } from '#component/bound-port.ts'
import { GENERIC_FLAGS } from '#component/flags/general-flags.ts'
import { ENABLEMENT_FLAGS } from '#control-plane/flags/access-flags.ts'
import { AUDIT_FLAGS } from '#control-plane/flags/audit-flags.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { aborted } from '#lib/abort.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int, oneOf, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { CONSOLE_FLAGS, startUpConsole } from '../console/up-console.ts'
import { runAlone } from '../process.ts'
import { OWN_PROGRAM } from '../program-path.ts'
import { startSmall } from '../small-heap.ts'
import { type ClusterFile, removeClusterFile, writeClusterFile } from './cluster-file.ts'
import { takeCluster } from './cluster-lock.ts'
import { UNFINISHED_RESET } from './data-dir-files.ts'
import { type DataDir, DATA_DIR_FLAGS, dataDir as dataDirOf, dataDirFlag } from './data-dir.ts'
import { type Ready, startDetached } from './detached.ts'
import { styleFor } from './style.ts'
import { chooseNodes, type NodeChoice, innerAddress, nodesText } from './up-nodes.ts'
import { recordKubeconfig } from './used-kubeconfigs.ts'

/** Flags for API server, controllers and scheduler. They apply to this start and are not stored. */
const FEATURES = { 'feature-gates': GENERIC_FLAGS['feature-gates'], ...ENABLEMENT_FLAGS }

const FLAGS = {
  cluster: {
    ...DATA_DIR_FLAGS,
    'from-snapshot': flag(
      string,
      '',
      'Start from a snapshot, `FILE[@MOMENT]`. MOMENT is a resourceVersion, a time (2026-11-18T03:00Z) or a time ago (-2m). ' +
        'The data directory must not contain a cluster yet.',
    ),
    kubeconfig: flag(string, '', 'File to add the context "hyperkube" to (default: KUBECONFIG, or ~/.kube/config)'),
    detach: flag(bool, false, 'Return when the cluster is ready. "hyperkube down" stops it.'),
    output: flag(oneOf('', 'json'), '', 'Output format. json: print one JSON line when the cluster is ready.', {
      shorthand: 'o',
    }),
  },
  'API server': {
    'secure-port': flag(int, 6443, 'Port of the API server. 0 picks a free port.'),
    'bind-address': flag(string, '127.0.0.1', 'IP address the API server listens on.'),
    ...FEATURES,
  },
  history: {
    history: flag(
      bool,
      true,
      'Keep the changes of all objects for 24 hours, at most 256 MiB: "hyperkube at -2h" and "kubectl history" read them.',
    ),
    'history-policy-file': flag(
      string,
      '',
      'File with a HistoryPolicy, which sets other limits and what is kept of each resource.',
    ),
  },
  'controllers and scheduler': {
    controllers: flag(strings, ['*'], 'Controllers to run, as for kube-controller-manager. Empty runs none.'),
    scheduler: flag(bool, true, 'Run the scheduler. Set it to false to run your own.'),
  },
  node: {
    runtime: flag(
      oneOf('auto', 'containerd', 'simulated'),
      'auto',
      'Runtime of the pods: containerd, simulated, or auto, which selects containerd for one node if the machine can run containers.',
    ),
    nodes: flag(
      int,
      1,
      'Number of nodes. With --runtime containerd: this machine, and the others in network namespaces. 0 starts no node.',
    ),
    'kubelet-address': flag(
      string,
      '',
      "IP address the kubelet of this machine listens on, such as the node's address. It always requires credentials. (default: --bind-address)",
    ),
  },
  network: {
    'cluster-cidr': flag(
      string,
      '',
      'CIDR range of pods, IPv4 or IPv4 and IPv6 separated by a comma. Kept with the cluster. (default: a free range)',
    ),
    'service-cluster-ip-range': flag(
      string,
      '',
      'CIDR range of Services, IPv4 or IPv4 and IPv6 separated by a comma. Kept with the cluster. (default: a free range)',
    ),
    'stub-domains': flag(
      strings,
      [],
      'Domains that other DNS servers resolve, as corp.example=10.1.2.3[:PORT]. Repeat it for each server.',
    ),
    'net-config-path': flag(
      string,
      '',
      "File with flannel's net-conf.json: the backend between nodes (vxlan with VNI and Port, or host-gw) and the pod network. Kept with the cluster.",
    ),
  },
  console: CONSOLE_FLAGS,
  auditing: { ...AUDIT_FLAGS },
  logs: LOG_FLAGS,
} as const

/**
 * `--help` lists the flags that people set by hand; `--help-all` adds feature gates and the settings of each audit
 * backend.
 */
const SHORT_HELP = {
  brief: {
    'feature-gates': 'Feature gates as KEY=true|false, separated by commas. --help-all lists the gates.',
    'runtime-config': 'API versions to serve, as KEY=true|false: v1, GROUP/VERSION, api/all, api/beta, api/alpha.',
  },
  omit: [
    ...Object.keys(AUDIT_FLAGS).filter((name) => !['audit-policy-file', 'audit-log-path'].includes(name)),
    'log-flush-frequency',
    'log-json-split-stream',
    'log-text-split-stream',
    'vmodule',
  ],
}

type UpInvocation = Invocation<typeof FLAGS>

const FEW_NODES = 50

/** The bootstrap kubeconfig for kubelets on other machines. */
const JOIN_FILE = 'bootstrap.kubeconfig'

/** The time that running requests get after Ctrl-C. */
const GRACE_MS = 5000

export const up: Program = defineProgram({
  name: 'up',
  long: 'up starts a cluster on this machine, or resumes the one in its data directory, and runs it until it is stopped.',
  version: kubernetesVersion(),
  flags: FLAGS,
  shortHelp: SHORT_HELP,
  run: runUp,
})

/** The start time of the process, if the process runs only this program. */
export function start(): void {
  void runAlone(up)
}

async function runUp(invocation: UpInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock } = invocation
  const dir = dataDirOf(flags, invocation)
  if (flags.detach) return startDetached(invocation, dir.path, (ready) => announce(invocation, ready))
  const startedMs = clock.elapsed()
  // After a signal or an error, everything closes in reverse order.
  await using closing = new AsyncDisposableStack()
  const { file, consoleUrl } = await bringUp(invocation, dir, { closing, signal }).catch(explain(flags, dir))
  closing.defer(() => removeClusterFile(dir.path))
  await writeClusterFile(dir.path, file)
  // A stop during the start prevents the ready message.
  const readyMs = Math.round(clock.elapsed() - startedMs)
  if (!signal.aborted) announce(invocation, { ...file, dataDir: dir.path, consoleUrl, readyMs })
  await aborted(signal)
  createReporter(invocation)('Stopping', 'waiting for running requests')
  return 0
}

interface StartedUp {
  readonly file: ClusterFile
  readonly consoleUrl: string | undefined
}

interface Shutdown {
  readonly closing: AsyncDisposableStack
  readonly signal: AbortSignal
}

async function bringUp(invocation: UpInvocation, dir: DataDir, { closing, signal }: Shutdown): Promise<StartedUp> {
  const { flags, clock, random, log } = invocation
  const say = createReporter(invocation)
  await mkdir(dir.path, { recursive: true, mode: 0o700 })
  const snapshot = flags['from-snapshot'] === '' ? undefined : await import('./from-snapshot.ts')
  snapshot?.refuseExisting(dir)
  const lock = takeCluster(dir.path, invocation.env)
  closing.defer(() => lock.release())
  if (existsSync(join(dir.path, UNFINISHED_RESET)))
    throw new ProgramError(`The cluster in ${dir.path} is only partly deleted; "hyperkube reset" deletes the rest`)
  if (snapshot !== undefined) say('Snapshot', await snapshot.restoreForUp(flags['from-snapshot'], dir, invocation))
  const chosen = await chooseNodes(invocation, dir.path)
  const host = flags['bind-address']
  const folder = join(dir.path, 'pki')
  const hosts = [...new Set([...servingNames(chosen.serviceCidr), host, ...innerAddress(chosen)])]
  const certificates = { files: pkiFolder(folder), hosts, clock, random, log }
  const pki = await openLocalPki(certificates)
  // Checked before anything starts.
  const entry = await addToKubeconfig(invocation, dir.path, pki)
  say('Certificates', folder)
  const around = { ...invocation, host: hostname(), graceMs: GRACE_MS, onStep: say }
  const plan = planOf(invocation, dir, chosen, pki)
  const start = (): Promise<RunningCluster> => runCluster(plan, around, closing)
  // Many nodes cause much work at the start, which is worth optimizing.
  const cluster = await (chosen.nodes > FEW_NODES ? start() : startSmall(start))
  const { running, client, controllers, nodesReady } = cluster
  let current = pki
  const newLinkCommand = `hyperkube status${dataDirFlag(dir.path, invocation.env)}`
  const console = { dataDir: dir.path, displayName: entry.context, cluster, pki: () => current, newLinkCommand }
  // Meanwhile nodes become ready.
  const consoleStart = startUpConsole(invocation, console, closing)
  await Promise.race([nodesReady, aborted(signal)])
  closing.use(tidyWhenQuiet(clock))
  say('Nodes', nodesText(chosen))
  const apiServer = `https://${bracketed(host)}:${running.port}`
  const write = (fresh: LocalPki): Promise<void> => {
    current = fresh
    return mergeKubeconfig(entry.file, kubeconfigEntry(entry.context, apiServer, fresh, dir.path))
  }
  await recordKubeconfig(dir.path, entry.file)
  await write(pki)
  if (controllers > 0) {
    const text = joinKubeconfig(apiServer, pki.ca.certificatePem, await makeJoinToken(client, random))
    await writeFileAtomically(join(dir.path, JOIN_FILE), text, { mode: 0o600 })
  }
  const freshness = keepFresh(certificates, pki, write)
  closing.defer(() => freshness.stop())
  say('Kubeconfig', `${entry.file}, context "${entry.context}"`)
  const startedAt = new Date(clock.now()).toISOString()
  const known = { pid: process.pid, apiServer, kubeconfig: entry.file, context: entry.context, startedAt }
  const file = { ...known, controllers, scheduler: flags.scheduler, nodes: chosen.nodes, runtime: chosen.runtime }
  return { file, consoleUrl: await consoleStart }
}

function kubeconfigEntry(
  name: string,
  server: string,
  { ca, admin }: LocalPki,
  owner: string,
): Parameters<typeof mergeKubeconfig>[1] {
  return {
    name,
    server,
    certificateAuthority: ca.certificatePem,
    clientCertificate: admin.certificate,
    clientKey: admin.key,
    owner,
  }
}

/** Throws ProgramError. */
function kubeletAddress(flags: UpInvocation['flags']): string {
  const address = flags['kubelet-address']
  if (address === '') return flags['bind-address']
  if (parseIp(address) === undefined) throw new ProgramError(`--kubelet-address: "${address}" is not an IP address`)
  return address
}

function planOf(
  { flags, env }: UpInvocation,
  { path, location }: DataDir,
  { runtime, podCidr, serviceCidr, nodes, nodeCidr = '', backend = backendFor(path) }: NodeChoice,
  { ca }: LocalPki,
): ClusterPlan {
  const pki = (file: string): string => join(path, 'pki', file)
  const isSimulated = runtime === 'simulated'
  const further = { many: nodes - 1, program: OWN_PROGRAM }
  const ranges = { nodeCidr, podCidr, backend, stubDomains: flags['stub-domains'] }
  const machine = { dataDir: path, env, address: kubeletAddress(flags), authority: ca, ...ranges, further }
  const names = Object.keys({ ...FEATURES, ...AUDIT_FLAGS }) as (keyof typeof FEATURES | keyof typeof AUDIT_FLAGS)[]
  const given = Object.fromEntries(names.map((name) => [name, flags[name]])) as Partial<Settings>
  return {
    server: serverSettings(pki, {
      ...given,
      datastore: location,
      // The objects of a store in memory are gone at the next start.
      'history-file': flags.history && location !== 'memory' ? join(path, 'history.db') : '',
      'history-policy-file': flags['history-policy-file'],
      'service-cluster-ip-range': serviceCidr,
      'encryption-key-file': join(path, 'encryption.key'),
      'bind-address': flags['bind-address'],
      'secure-port': flags['secure-port'],
      'enable-bootstrap-token-auth': true,
    }),
    manager: managerSettings(pki, { 'cluster-cidr': podCidr, 'service-cluster-ip-range': serviceCidr }),
    controllers: flags.controllers,
    volumes: volumesFolder(path),
    hasScheduler: flags.scheduler,
    nodes: { simulated: isSimulated ? nodes : 0, ...(!isSimulated && nodes > 0 && { machine }) },
  }
}

interface KubeconfigEntry {
  readonly file: string
  readonly context: string
}

/** Leaves contexts of other clusters alone, including those of hyperkube. */
async function addToKubeconfig(
  { flags, cwd, env }: UpInvocation,
  dataDir: string,
  { ca }: LocalPki,
): Promise<KubeconfigEntry> {
  const file = resolve(cwd, await kubeconfigForNewEntries(kubeconfigFiles(flags.kubeconfig, env), cwd))
  const names = ['hyperkube', `hyperkube-${basename(dataDir)}`]
  const who = { owner: dataDir, certificateAuthority: ca.certificatePem }
  const context = await freeName(file, names, who).catch((cause: Error) => {
    throw new ProgramError(cause.message, { cause })
  })
  if (context !== undefined) return { file, context }
  const taken = names.map((name) => `"${name}"`).join(' and ')
  throw new ProgramError(
    `${file} has entries ${taken} of other clusters; set another file with --kubeconfig, or another --data-dir`,
  )
}

function announce({ flags, stdout, env }: UpInvocation, ready: Ready): void {
  const { apiServer, kubeconfig, context, dataDir, readyMs, nodes, runtime, consoleUrl } = ready
  if (flags.output === 'json') {
    const known = { apiServer, kubeconfig, context, dataDir, readyMs, nodes, runtime, consoleUrl }
    stdout.write(`${JSON.stringify(known)}\n`)
    return
  }
  const { bold } = styleFor(stdout, env)
  const which = dataDirFlag(dataDir, env)
  const file = flags.kubeconfig === '' ? '' : ` --kubeconfig ${flags.kubeconfig}`
  stdout.write(
    [
      `\n${bold(`Ready in ${readyMs} ms.`)} ${nodes === 0 ? WITHOUT_NODES : WITH_NODES[runtime]}`,
      ...(consoleUrl === undefined ? [] : [`Console: ${consoleUrl}`]),
      `Try:   kubectl${file} --context ${context} create deployment web --image=nginx --replicas=3`,
      `Stop:  ${flags.detach ? `hyperkube down${which}` : 'Ctrl-C'}; the next "hyperkube up${which}" resumes the cluster.\n\n`,
    ].join('\n'),
  )
}

const WITHOUT_NODES = 'This cluster has no nodes: pods stay pending until you add one.'
const WITH_NODES: Readonly<Record<NodeRuntime, string>> = {
  containerd: 'The node is this machine: pods run in containers.',
  simulated: 'Nodes are simulated: pods become ready, end and fail, but run no containers.',
}
/** One line for each step, with the time since the previous one. */
function createReporter({ flags, stdout, clock, env }: UpInvocation): (what: string, where: string) => void {
  let lastMs = clock.elapsed()
  const style = styleFor(stdout, env)
  return (what, where) => {
    const nowMs = clock.elapsed()
    if (flags.output !== 'json') {
      const took = `${Math.round(nowMs - lastMs)} ms`.padStart(8)
      stdout.write(`${style.bold(what.padEnd(14))}${style.dim(took)}   ${where}\n`)
    }
    lastMs = nowMs
  }
}

/** Reports problems that the user can fix without a stack trace. */
function explain(flags: UpInvocation['flags'], { path }: DataDir): (error: unknown) => never {
  return (error) => {
    const { cause = error } = error as Error
    const { code } = cause as NodeJS.ErrnoException
    const port = flags['secure-port']
    const full = `The disk of ${path} is full; free some space, or set another directory with --data-dir`
    const message = {
      EADDRINUSE: `Port ${port} is in use; is another cluster running? Set another port with --secure-port`,
      ENOSPC: full,
      'no-space': full,
      EACCES: `${(cause as Error).message}; set a directory that you own with --data-dir`,
      EROFS: `${(cause as Error).message}; set a writable directory with --data-dir`,
    }[code ?? '']
    if (message === undefined) throw error
    throw new ProgramError(message, { cause })
  }
}
